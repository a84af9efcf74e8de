import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as esbuild from "esbuild";
import { licensesOf } from "./licenses.ts";
import { declarationsOf } from "./types.ts";

/*
 * Bundles the sources and emits their types into dist/, which npm publishes. `npm pack` and `npm publish` run this (prepack).
 * The bundle contains all dependencies and imports no Node modules, so that it runs in browsers too.
 */

const root = join(import.meta.dirname, "..");
const outdir = join(root, "dist");

rmSync(outdir, { recursive: true, force: true });
const { metafile } = await esbuild.build({
  absWorkingDir: root,
  entryPoints: ["src/index.ts"],
  outdir,
  bundle: true,
  format: "esm",
  platform: "neutral",
  mainFields: ["module", "main"],
  target: "es2022",
  // The names of the error classes appear in stacks.
  keepNames: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
writeFileSync(join(outdir, "LICENSES.txt"), licensesOf(metafile, root));

// tsc keeps ".ts" in the imports of declaration files, which a consumer's compiler does not resolve.
for (const [path, text] of declarationsOf(join(root, "src/index.ts"))) {
  // The modules in folders are internal: no public type refers to them.
  if (dirname(path) !== join(root, "src")) continue;
  const types = text.replaceAll(/(?<=from "\.\/[\w/-]+)(\.d)?\.ts(?=")/g, ".js");
  writeFileSync(join(outdir, basename(path)), types);
}
// tsc does not copy declaration files.
copyFileSync(join(root, "src/schema.d.ts"), join(outdir, "schema.d.ts"));
