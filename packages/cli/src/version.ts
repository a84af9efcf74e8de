import { readFileSync } from "node:fs";

/** Returns the version in the package's package.json, which is one folder above the sources and above the bundle alike. */
export function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  return version;
}
