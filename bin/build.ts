import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import * as esbuild from "esbuild";
import { endpoints } from "../functions/manifest/endpoints.ts";
import { workers } from "../functions/manifest/workers.ts";
import { bundleFolder } from "../lib/names.ts";
import { checkBudgets } from "./build/budgets.ts";
import { checkStubs, stubModules } from "./build/bundle-stubs.ts";
import { smokeLoad } from "./build/smoke-load.ts";

const root = join(import.meta.dirname, "..");

/** Path below `functions/` of every function there is. */
const files = [...endpoints, ...workers].map((row) => row.file);

/**
 * Bundles every function, all in one call, into `<outdir>/<folder>/index.js`, and leaves esbuild's account of what went
 * into them in `<outdir>/meta.json`. The same sources make the same bytes, wherever they lie. Then checks what a cold start
 * depends on: the size of each bundle, and that it loads.
 * @param outdir absolute, or relative to the project
 * @throws Error that names the rows whose file does not exist, or the bundles that are too large or do not load
 */
export async function build({ outdir }: { outdir: string }): Promise<esbuild.Metafile> {
  const missing = files.filter((file) => !existsSync(sourceOf(file)));
  if (missing.length > 0) {
    const names = missing.map((file) => relative(root, sourceOf(file))).join(", ");
    throw new Error(
      `functions/manifest/endpoints.ts and functions/manifest/workers.ts name files that do not exist: ${names}`,
    );
  }
  const { metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(files.map((file) => [`${bundleFolder(file)}/index`, sourceOf(file)])),
    outdir,
    bundle: true,
    metafile: true,
    logLevel: "warning",
    platform: "node",
    target: "node24",
    minify: true,
    legalComments: "none",
    // CommonJS all the way: on Node 22 and later the first ESM import of `node:http`, or a dynamic import, loads undici,
    // http2 and the web streams, which takes as long as half of the rest of a cold start.
    format: "cjs",
    supported: { "dynamic-import": false },
    // The ESM sources of the packages, which lose their unused parts in the bundle. So do ours: package.json says that they
    // do nothing when they are imported.
    mainFields: ["module", "main"],
    // Asking whether a body is a web stream loads the web streams of Node: a thirtieth of a cold start.
    define: { ReadableStream: "undefined" },
    plugins: [stubModules],
  });
  const out = resolve(root, outdir);
  await mkdir(out, { recursive: true });
  await writeFile(join(out, "meta.json"), JSON.stringify(metafile));
  // The project is ESM and Lambda knows nothing of that: this lets Node load the bundles here as it does there.
  await writeFile(join(out, "package.json"), '{ "type": "commonjs" }\n');
  checkStubs(metafile);
  const bundles = files.map((file): [string, string] => [file, join(out, bundleFolder(file), "index.js")]);
  checkBudgets(new Map(bundles.map(([file, path]) => [file, outputAt(metafile, path)])));
  smokeLoad(bundles);
  return metafile;
}

function outputAt({ outputs }: esbuild.Metafile, path: string) {
  const output = outputs[relative(root, path)];
  if (!output) throw new Error(`esbuild has not written ${path}`);
  return output;
}

function sourceOf(file: string): string {
  return join(root, "functions", `${file}.ts`);
}

if (import.meta.main) {
  try {
    await build({ outdir: "dist" });
  } catch (error) {
    // esbuild has printed its own findings.
    if (!(error instanceof Error && "errors" in error)) console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
