import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import * as esbuild from "esbuild";
import { licensesOf } from "../../client/build/licenses.ts";

/*
 * Bundles the sources into dist/, which npm publishes. `npm pack` and `npm publish` run this (prepack).
 * The bundle contains all dependencies and runs on Node 20, which cannot run the TypeScript sources.
 */

const root = join(import.meta.dirname, "..");
const outdir = join(root, "dist");

rmSync(outdir, { recursive: true, force: true });
const { metafile } = await esbuild.build({
  absWorkingDir: root,
  entryPoints: ["src/program.ts"],
  outdir,
  bundle: true,
  // Commands that import a module when they run get a file of their own, so that --help does not load it.
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  // Its CommonJS build, which Node gets by default, calls require, which an ES module does not have.
  alias: { yaml: join(dirname(createRequire(import.meta.url).resolve("yaml/package.json")), "browser/index.js") },
  // Not minified: a stack trace shows the line of an error.
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
writeFileSync(join(outdir, "LICENSES.txt"), licensesOf(metafile, root));
