import { bundleFunctions } from "../build/bundle-functions.ts";
import { command } from "../command/command.ts";

const help = {
  name: "npm run build",
  about: `Bundles every function into dist/, one folder each, and checks that each bundle loads and is within its size budget.
cdk synth, diff and deploy do this first by themselves.`,
  examples: ["npm run build"],
};

export async function main(): Promise<void> {
  await command(help, async () => void (await build()));
}

/** Bundles all functions, and prints what is wrong with them. @returns whether nothing is */
export async function build(options = { outdir: "dist" }): Promise<boolean> {
  try {
    await bundleFunctions(options);
    return true;
  } catch (error) {
    process.exitCode = 1;
    // esbuild prints its own findings.
    const isReported = error instanceof Error && "errors" in error;
    if (!isReported) console.error(error instanceof Error ? error.message : error);
    return false;
  }
}
