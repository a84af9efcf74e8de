import { spawnSync } from "node:child_process";

/** Modules of Node that no function needs and that add half to the CPU of a cold start. */
const unwanted = ["internal/deps/undici/undici", "http2", "internal/webstreams/readablestream"];

const DEFAULT_LIMIT_MS = 20_000;

/** Runs in a separate process and prints a line for each problem. */
const script = `
  const [bundles, unwanted] = JSON.parse(process.argv[1]);
  for (const [id, path] of bundles) {
    try {
      if (typeof require(path).handler !== "function") console.log("The bundle of " + id + " exports no handler.");
    } catch (error) {
      console.log("The bundle of " + id + " does not load: " + error.message);
    }
    const loaded = unwanted.filter((name) => process.moduleLoadList.includes("NativeModule " + name));
    if (loaded.length > 0) {
      console.log("The bundle of " + id + " loads " + loaded.join(", ") + ", which slows down every cold start.");
      break;
    }
  }`;

/**
 * Loads each bundle as Lambda does, but without any environment variable: importing a handler has no effect.
 * @param bundles row id and absolute path of the bundle of each function
 * @param limitMs upper bound on the time to load them all
 * @throws Error with a line for each problem
 */
export function smokeLoad(bundles: [id: string, path: string][], limitMs = DEFAULT_LIMIT_MS): void {
  const { stdout, stderr, error, status } = spawnSync(
    process.execPath,
    ["--input-type=commonjs", "-e", script, "--", JSON.stringify([bundles, unwanted])],
    { env: {}, encoding: "utf8", timeout: limitMs },
  );
  if (error) {
    const { message } = error;
    throw new Error(`${message}. If it is a timeout, a bundle keeps the process running for ${limitMs / 1000} s.`);
  }
  const output = `${stdout}${stderr}`.trim();
  if (output !== "" || status !== 0) throw new Error(output || `The bundles do not load: exit code ${status}.`);
}
