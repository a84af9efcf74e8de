import { spawnSync } from "node:child_process";

/** Modules of Node that take half as long to load as all the rest of a cold start, and that no function needs. */
const unwanted = ["internal/deps/undici/undici", "http2", "internal/webstreams/readablestream"];

const TIME_LIMIT_MS = 20_000;

/** Runs in a process of its own. Prints a line for each problem. */
const script = `
  const [bundles, unwanted] = JSON.parse(process.argv[1]);
  for (const [file, path] of bundles) {
    try {
      if (typeof require(path).handler !== "function") console.log("The bundle of " + file + " exports no handler.");
    } catch (error) {
      console.log("The bundle of " + file + " does not load: " + error.message);
    }
    const loaded = unwanted.filter((name) => process.moduleLoadList.includes("NativeModule " + name));
    if (loaded.length > 0) {
      console.log("The bundle of " + file + " loads " + loaded.join(", ") + ", which slows every cold start down.");
      break;
    }
  }`;

/**
 * Loads each bundle as Lambda does, but with no setting at all: importing a handler has no effect and needs nothing.
 * @param bundles path below `functions/` and absolute path of the bundle of each function
 * @throws Error with a line for each problem
 */
export function smokeLoad(bundles: [file: string, path: string][]): void {
  const { stdout, stderr, error, status } = spawnSync(
    process.execPath,
    ["--input-type=commonjs", "-e", script, "--", JSON.stringify([bundles, unwanted])],
    { env: {}, encoding: "utf8", timeout: TIME_LIMIT_MS },
  );
  if (error) {
    const isLate = (error as NodeJS.ErrnoException).code === "ETIMEDOUT";
    throw isLate
      ? new Error(`A bundle keeps the process running after it was loaded: ${TIME_LIMIT_MS / 1000} s`)
      : error;
  }
  const said = `${stdout}${stderr}`.trim();
  if (said !== "" || status !== 0) throw new Error(said || `The bundles do not load: exit code ${status}`);
}
