const { spawn } = require("node:child_process");
const { existsSync, readdirSync } = require("node:fs");
const { enableCompileCache } = require("node:module");
const { basename, join } = require("node:path");
const { pathToFileURL } = require("node:url");

/*
 * Starts a program of bin/commands with any Node: `node bin/run.cjs <name> [options]`, and `node bin/local.ts`, which is a link to
 * this file. A Node that runs TypeScript runs the program itself. An older one hands over to the Node that npm installs with
 * the project.
 */

const root = join(__dirname, "..");
const ownNode = join(root, "node_modules", "node", "bin", "node");

// A program finds its options where it would find them if it had been started itself.
const name = basename(process.argv[1]) === "local.ts" ? "local" : process.argv.splice(2, 1)[0];
void start();

function start() {
  const names = readdirSync(join(__dirname, "commands")).map((file) => basename(file, ".ts"));
  if (!names.includes(name)) return fail(`Pass the name of a program: ${names.join(", ")}.`, 2);
  if (!existsSync(join(root, "node_modules"))) return fail("The packages are not installed. Run npm install first.");
  if (process.features.typescript) return run(join(__dirname, "commands", `${name}.ts`));
  if (existsSync(ownNode)) return startOwnNode();
  fail(
    `Node ${process.versions.node} cannot run this program, and the project's own Node is not installed. ` +
      "Run npm install again, or use Node 24.",
  );
}

async function run(path) {
  // From the second start on, programs take about three quarters of the time. An environment with NODE_COMPILE_CACHE keeps its own.
  enableCompileCache(join(root, "node_modules/.cache/node"));
  const output = join(root, "packages/cli/src/terminal/checked-output.ts");
  const [{ main }, { watchOutput }] = await Promise.all([path, output].map((each) => import(pathToFileURL(each).href)));
  watchOutput((code) => {
    // The program continues, so that a drill undoes its faults. EPIPE: a reader such as `head` has closed the pipe.
    if (code !== "EPIPE") console.error(`Could not write to stdout (${code}).`);
    process.on("exit", (exitCode) => {
      process.exitCode = exitCode || 1;
    });
  });
  await main();
}

function fail(message, exitCode = 1) {
  console.error(message);
  process.exitCode = exitCode;
}

function startOwnNode() {
  const env = { ...process.env, STARTED_BY_OTHER_NODE: "1" };
  const child = spawn(ownNode, [__filename, name, ...process.argv.slice(2)], { stdio: "inherit", env });
  // A terminal sends Ctrl-C to both processes, and the program decides how to end. SIGTERM reaches only this one.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("error", ({ message }) =>
    fail(`Could not start ${ownNode}: ${message}. Run npm install again, or use Node 24.`),
  );
  child.on("exit", (code, signal) => {
    if (signal === null) {
      process.exitCode = code ?? 1;
    } else {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
  });
}
