import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../local/command.ts";
import { vectorsText } from "../vectors/vectors.ts";

const help = {
  name: "npm run --silent vectors",
  about: "Writes docs/vectors.json, the test vectors for receivers.",
  examples: ["npm run --silent vectors"],
};

export async function main(): Promise<void> {
  await command(help, async () => {
    const text = vectorsText();
    writeFileSync(join(import.meta.dirname, "../../docs/vectors.json"), text);
    return `docs/vectors.json ${(Buffer.byteLength(text) / 1024).toFixed(0)} KB`;
  });
}
