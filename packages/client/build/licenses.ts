import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Metafile } from "esbuild";

/**
 * The licenses of the packages in a bundle, for the file that is published with it.
 * @param root the folder that the paths in `metafile` are relative to
 */
export function licensesOf({ inputs }: Metafile, root: string): string {
  const folders = Object.keys(inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => licenseOf(join(root, folder)));
  return `This package contains the following packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** @throws Error when the package has no license file */
function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} ${version} has no license file.`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
