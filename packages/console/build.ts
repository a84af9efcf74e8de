import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as esbuild from "esbuild";

const page = join(import.meta.dirname, "src");

/** One file of the console as a browser asks for it. */
export interface PageFile {
  /** Below the console's address: `main.js`. */
  name: string;
  body: Uint8Array;
}

/** Browsers of the last two years. The page asks for nothing newer without a way around it. */
const target = ["chrome120", "firefox121", "safari17.4"];

/**
 * Bundles the console's page: four files that need nothing beside them but `config.json`, which says where the API is. The
 * same sources make the same bytes.
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

/** Writes the page's files into a folder, which then holds nothing else: what a stage uploads. */
export async function writeConsole(outdir: string): Promise<void> {
  await rm(outdir, { recursive: true, force: true });
  await mkdir(outdir, { recursive: true });
  for (const { name, body } of await buildConsole()) await writeFile(join(outdir, name), body);
}
