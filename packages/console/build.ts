import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as esbuild from "esbuild";

const page = join(import.meta.dirname, "src");
const font = join(import.meta.dirname, "../../node_modules/@fontsource-variable/inter");
const receivers = join(import.meta.dirname, "../../docs/receivers");

/** One file of the console's page. */
export interface PageFile {
  /** Path below the console's address, for example `main.js`. */
  name: string;
  body: Uint8Array;
}

/** The oldest browsers with `AbortSignal.any`, which the client uses. Newer features need a fallback. */
const target = ["chrome120", "firefox124", "safari17.4"];

/**
 * Bundles the console: the files of the first screen, a `.js` file for each part that is loaded later, and `receivers.json`
 * with the code of `docs/receivers`, and the license of the font. The server adds `config.json` with the address of the API. The same sources give the
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
    splitting: true,
    minify: true,
    format: "esm",
    target,
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".html": "copy", ".svg": "copy", ".woff2": "file" },
    assetNames: "[name]",
    legalComments: "none",
    charset: "utf8",
    logLevel: "warning",
  });
  const files = outputFiles.map(({ path, contents }) => ({ name: path.slice(page.length + 1), body: contents }));
  const license = await readFile(join(font, "LICENSE"));
  files.push({ name: "inter-license.txt", body: license });
  return [...files, { name: "receivers.json", body: new TextEncoder().encode(JSON.stringify(await receiverFiles())) }];
}

/** Reads the code of `docs/receivers`: its text by path, such as `python/verify_webhook.py`. */
async function receiverFiles(): Promise<Record<string, string>> {
  const paths = (await readdir(receivers, { recursive: true })).filter((path) =>
    /\/.*\.(mjs|py|go|rb|php|sh)$/.test(path),
  );
  const files = paths.sort().map(async (path) => [path, await readFile(join(receivers, path), "utf8")]);
  return Object.fromEntries(await Promise.all(files));
}

/** Replaces the contents of a folder with the page's files, for the upload of a stage. */
export async function writeConsole(outdir: string): Promise<void> {
  await rm(outdir, { recursive: true, force: true });
  await mkdir(outdir, { recursive: true });
  for (const { name, body } of await buildConsole()) await writeFile(join(outdir, name), body);
}
