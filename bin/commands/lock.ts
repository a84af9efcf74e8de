import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command } from "../command/command.ts";
import { StartError } from "../command/start-error.ts";

const path = join(import.meta.dirname, "../../package-lock.json");

const help = {
  name: "npm run --silent lock",
  about: `Adds the optional packages of other platforms to package-lock.json, without which npm ci refuses it. npm leaves out those
that its registry did not return when the file was written. Run it after each change of a dependency.`,
  examples: ["npm install --save-exact zod@latest && npm run --silent lock"],
};

interface LockedPackage {
  version?: string;
  dev?: boolean | undefined;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[] | undefined;
  optionalDependencies?: Record<string, string>;
}
/** By path, such as `node_modules/jest`; the project itself is "". */
export type LockedPackages = Record<string, LockedPackage>;

export async function main(): Promise<void> {
  await command(help, async () => {
    const lock: { packages: LockedPackages } = JSON.parse(readFileSync(path, "utf8"));
    const packages = completed(lock.packages);
    writeFileSync(path, `${JSON.stringify({ ...lock, packages }, null, 2)}\n`);
    const added = Object.keys(packages).filter((name) => !Object.hasOwn(lock.packages, name));
    return [...added.map((name) => `+ ${name}`), "package-lock.json is complete"].join("\n");
  });
}

/** Returns the packages with the missing ones, in the order of npm, so that its next change moves no line. */
export function completed(locked: LockedPackages): LockedPackages {
  const all = Object.entries({ ...locked, ...missingPackages(locked) });
  return Object.fromEntries(all.sort(([a], [b]) => a.localeCompare(b, "en")));
}

/**
 * Returns an entry for each optional package that a lock file names without listing it. It has no hash: npm resolves it by its
 * version on the platform that needs it.
 * @throws StartError if the version or the platform cannot be derived from the range and the name
 */
export function missingPackages(locked: LockedPackages): LockedPackages {
  const missing: LockedPackages = {};
  for (const [dependent, { dev, optionalDependencies = {} }] of Object.entries(locked)) {
    for (const [name, range] of Object.entries(optionalDependencies)) {
      const place = `node_modules/${name}`;
      // The project itself is the first dependent, and not a development dependency.
      if (!isListed(locked, dependent, name)) missing[place] ??= entryOf(name, range, dev);
    }
  }
  return missing;
}

/** Whether Node would find the package from this folder: in its `node_modules`, or in those of a folder above. */
function isListed(locked: LockedPackages, folder: string, name: string): boolean {
  if (join(folder, "node_modules", name) in locked) return true;
  return folder !== "." && isListed(locked, dirname(folder), name);
}

const systems = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const processors = ["arm", "arm64", "ia32", "loong64", "ppc64", "riscv64", "s390x", "x64"];

/** Takes the platform from the name, such as `@biomejs/cli-linux-x64-musl`. */
function entryOf(name: string, range: string, dev?: boolean): LockedPackage {
  const words = name.split(/[/-]/);
  const [os, cpu] = [systems, processors].map((known) => words.filter((word) => known.includes(word)));
  if (!/^\d+\.\d+\.\d+$/.test(range) || os?.length !== 1 || cpu?.length !== 1) {
    throw new StartError(
      `No entry for ${name}@${range}: add it to package-lock.json with version, optional, os and cpu.`,
    );
  }
  const libc = name.includes("-gnu") ? ["glibc"] : name.includes("-musl") ? ["musl"] : undefined;
  return { version: range, cpu, dev, libc, optional: true, os };
}
