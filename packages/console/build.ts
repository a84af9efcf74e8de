import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as esbuild from "esbuild";

const page = join(import.meta.dirname, "src");

/** One file of the console's page. */
export interface PageFile {
  /** Path below the console's address, for example `main.js`. */
  name: string;
  body: Uint8Array;
}

/** The oldest browsers with `AbortSignal.any`, which the client uses. Newer features need a fallback. */
const target = ["chrome120", "firefox124", "safari17.4"];

/**
 * Bundles the console into four files. The server adds `config.json` with the address of the API. The same sources give the
 * same bytes.
 */
export async function buildConsole(): Promise<PageFile[]> {
  const { outputFiles } = await esbuild.build({
    absWorkingDir: page,
    entryPoints: ["index.html", "main.tsx", "console.css", "icon.svg"],
    entryNames: "[name]",
    outdir: page,
    write: false,
    bundle: true,
    minify: true,
    format: "esm",
    target,
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".html": "copy", ".svg": "copy" },
    legalComments: "none",
    charset: "utf8",
    logLevel: "warning",
  });
  return outputFiles.map(({ path, contents }) => ({ name: path.slice(page.length + 1), body: contents }));
}

/** Replaces the contents of a folder with the page's files, for the upload of a stage. */
export async function writeConsole(outdir: string): Promise<void> {
  await rm(outdir, { recursive: true, force: true });
  await mkdir(outdir, { recursive: true });
  for (const { name, body } of await buildConsole()) await writeFile(join(outdir, name), body);
}
