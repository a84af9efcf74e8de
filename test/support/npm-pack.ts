import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

/*
 * Packs and installs a workspace as a user does: offline, in a directory without a checkout, on the Node of the
 * machine.
 */

const root = join(import.meta.dirname, "../..");

/** A folder outside the checkout. It is deleted after the tests of the file. */
export const folder = mkdtempSync(join(tmpdir(), "packed-"));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

const pathWithoutCheckout = (process.env.PATH ?? "").split(delimiter).filter((path) => !path.includes("node_modules"));

/** The first Node 20 or later on PATH that is not the one in node_modules; else the one that runs the tests. */
export const machineNode: string =
  pathWithoutCheckout
    .map((path) => join(path, "node"))
    .find((file) => existsSync(file) && majorVersionOf(file) >= 20) ?? process.execPath;

function majorVersionOf(node: string): number {
  return Number(/^v(\d+)/.exec(execFileSync(node, ["--version"], { encoding: "utf8" }))?.[1]);
}

/** The environment of a user: finds no program of the checkout. */
export const userEnvironment = {
  PATH: [dirname(machineNode), ...pathWithoutCheckout].join(delimiter),
  HOME: folder,
  XDG_CACHE_HOME: join(folder, "cache"),
};

const npm = (args: string[], cwd: string, env: Record<string, string>) =>
  execFileSync("npm", [...args, "--offline", "--no-audit", "--no-fund", "--no-update-notifier"], {
    cwd,
    env: { ...env, npm_config_cache: join(folder, "npm-cache") },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });

interface Packed {
  tarball: string;
  /** The paths in the tarball. */
  files: string[];
}

/** Packs a workspace, such as `packages/cli`. */
export function pack(workspace: string): Packed {
  const args = ["pack", "--workspace", workspace, "--pack-destination", folder, "--json"];
  const output: unknown = JSON.parse(npm(args, root, { PATH: process.env.PATH ?? "", HOME: folder }));
  // npm 10 and 11 print an array, later versions an object by name.
  const [{ filename, files }] = Object.values(output as object);
  return { tarball: join(folder, filename), files: files.map(({ path }: { path: string }) => path).sort() };
}

/** Installs a tarball. @param options further options of `npm install`, such as `--global` */
export const install = (tarball: string, cwd: string, ...options: string[]): string =>
  npm(["install", ...options, tarball], cwd, userEnvironment);
