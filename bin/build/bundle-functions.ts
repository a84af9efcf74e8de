import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import * as esbuild from "esbuild";
import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import { budgetOf, checkBudgets } from "./budgets.ts";
import { checkStubs, stubModules } from "./bundle-stubs.ts";
import { smokeLoad } from "./smoke-load.ts";

const root = join(import.meta.dirname, "../..");

type FunctionSource = Pick<(typeof functionRows)[number], "id" | "file">;

interface Options {
  outdir: string;
  rows?: readonly FunctionSource[];
  budgetKbOf?: (id: string) => number;
  loadLimitMs?: number;
}

/**
 * Bundles every function into `<outdir>/<row id>/index.js`, with a source map in `<outdir>/maps`, and writes esbuild's report to
 * `<outdir>/meta.json`. The same sources give the same bytes, in any folder. Then checks what a cold start depends on: the size of each bundle, and that it
 * loads. One call of esbuild: CDK's `NodejsFunction` runs it once per function, which takes minutes.
 * @param outdir absolute, or relative to the project
 * @param rows the functions to bundle; absent = all
 * @param budgetKbOf upper bound on the size of each bundle
 * @param loadLimitMs upper bound on the time to load all bundles; absent = 20 s
 * @throws Error that names the rows whose id does not exist, or the bundles that are too large or do not load
 */
export async function bundleFunctions({
  outdir,
  rows = functionRows,
  budgetKbOf = budgetOf,
  loadLimitMs,
}: Options): Promise<esbuild.Metafile> {
  const missing = rows.filter((row) => !existsSync(sourceOf(row)));
  if (missing.length > 0) {
    const names = missing.map((row) => relative(root, sourceOf(row))).join(", ");
    throw new Error(
      `functions/foundation/manifest/endpoints.ts and functions/foundation/manifest/workers.ts name files that do not exist: ${names}`,
    );
  }
  const { metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(rows.map((row) => [`${row.id}/index`, sourceOf(row)])),
    outdir,
    bundle: true,
    metafile: true,
    logLevel: "warning",
    platform: "node",
    target: "node24",
    minify: true,
    legalComments: "none",
    // For `npm run trace`. A bundle that refers to its map starts slower.
    sourcemap: "external",
    sourcesContent: false,
    // CommonJS throughout: on Node 22 and later the first ESM import of `node:http`, or a dynamic import, loads undici, http2
    // and web streams, which adds half to the CPU of a cold start.
    format: "cjs",
    supported: { "dynamic-import": false },
    // The ESM sources of packages, whose unused exports are removed. Ours are too, because package.json declares
    // `sideEffects: false`.
    mainFields: ["module", "main"],
    // The check whether a body is a web stream would load Node's web streams: 3 % of the CPU of a cold start.
    define: { ReadableStream: "undefined" },
    plugins: [stubModules],
  });
  const out = resolve(root, outdir);
  await writeFile(join(out, "meta.json"), JSON.stringify(metafile));
  // The project is ESM, but a deployed bundle has no package.json. With this id Node loads it as CommonJS here too.
  await writeFile(join(out, "package.json"), '{ "type": "commonjs" }\n');
  checkStubs(metafile);
  const bundles = rows.map(({ id }): [string, string] => [id, join(out, id, "index.js")]);
  // Away from the bundles, whose folders are deployed as they are.
  await mkdir(join(out, "maps"), { recursive: true });
  for (const [id, path] of bundles) await rename(`${path}.map`, join(out, "maps", `${id}.map`));
  checkBudgets(new Map(bundles.map(([id, path]) => [id, outputAt(metafile, path)])), budgetKbOf);
  smokeLoad(bundles, loadLimitMs);
  return metafile;
}

function outputAt({ outputs }: esbuild.Metafile, path: string) {
  const output = outputs[relative(root, path)];
  if (!output) throw new Error(`esbuild did not write ${path}`);
  return output;
}

function sourceOf({ file }: FunctionSource): string {
  return join(root, "functions", `${file}.ts`);
}
