import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as esbuild from "esbuild";
import ts from "typescript";
import { licensesOf } from "./licenses.ts";

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
emitTypes();

/** @throws Error when the sources have a type error */
function emitTypes(): void {
  const program = ts.createProgram([join(root, "src/index.ts")], {
    target: ts.ScriptTarget.ES2024,
    module: ts.ModuleKind.NodeNext,
    strict: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [join(root, "../../node_modules/@types")],
    allowImportingTsExtensions: true,
    declaration: true,
    emitDeclarationOnly: true,
    outDir: outdir,
  });
  // tsc keeps ".ts" in the imports of declaration files, which a consumer's compiler does not resolve.
  const { diagnostics } = program.emit(undefined, (path, text) => {
    // The modules in folders are internal: no public type refers to them.
    if (dirname(path) !== outdir) return;
    writeFileSync(path, text.replaceAll(/(?<=from "\.\/[\w/-]+)(\.d)?\.ts(?=")/g, ".js"));
  });
  const errors = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  const host = { getCanonicalFileName: String, getCurrentDirectory: () => root, getNewLine: () => "\n" };
  if (errors.length > 0) throw new Error(ts.formatDiagnostics(errors, host));
  // tsc does not copy declaration files.
  copyFileSync(join(root, "src/schema.d.ts"), join(outdir, "schema.d.ts"));
}
