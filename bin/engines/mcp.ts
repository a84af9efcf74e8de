import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { mintToken } from "../command/mint-token.ts";
import { StartError } from "../command/start-error.ts";
import { demoUser } from "../demo/demo-user.ts";
import { type Engine, withServer } from "./engine.ts";

const PORT = 5_058;
const url = `http://127.0.0.1:${PORT}`;

/**
 * The scenarios for every server. The others call tools, prompts and resources that only a server for these tests has.
 */
const scenarios = [
  "server-initialize",
  "ping",
  "tools-list",
  "server-session-lifecycle",
  "server-stateless",
  "caching",
  "http-header-validation",
  "dns-rebinding-protection",
];

export const engine: Engine = {
  summary: "the scenarios of MCP's conformance tests that are for every server, against POST /mcp",
  programs: ["conformance"],
  install: "npm install --global @modelcontextprotocol/conformance@0.2.0-alpha.12",
  async run() {
    const folder = mkdtempSync(join(tmpdir(), "engines-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const JWT_SECRET = randomBytes(32).toString("hex");
    const proxy = signedIn(mintToken(JWT_SECRET, demoUser.userId));
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    const target = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
    const env = { DATA_DIR: folder, PORT: String(PORT), SQS_PORT: "0", JWT_SECRET };
    // The program needs a newer Node than the one that may be in PATH.
    const PATH = [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
    try {
      await withServer([process.execPath, "bin/run.cjs", "local"], url, { env }, async () => {
        for (const scenario of scenarios) await judge(scenario, target, { cwd: folder, env: { PATH } });
      });
    } finally {
      proxy.close();
      proxy.closeAllConnections();
    }
  },
};

/** Of a check that needs a tool, a prompt or a resource which only a server for these tests has. */
const NOT_TESTABLE =
  /^Not testable: server does not list the diagnostic tool|^(prompts|resources)\/\S+ .*Method not found/;

interface Check {
  id: string;
  status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";
  errorMessage?: string;
}

/** Runs a scenario, and prints what it found. @throws StartError when the service disagrees with it */
async function judge(scenario: string, target: string, place: { cwd: string; env: Record<string, string> }) {
  const results = join(place.cwd, scenario);
  const args = ["server", "--url", target, "--scenario", scenario, "--output-dir", results];
  const program = spawn("conformance", args, {
    stdio: "ignore",
    cwd: place.cwd,
    env: { ...process.env, ...place.env },
  });
  await once(program, "exit");
  const [file] = globSync("**/checks.json", { cwd: results });
  if (file === undefined) throw new StartError(`conformance did not run ${scenario}.`);
  const checks: Check[] = JSON.parse(readFileSync(join(results, file), "utf8"));
  const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
  const failures = checks.filter(
    ({ status, errorMessage = "" }) => status === "FAILURE" && !NOT_TESTABLE.test(errorMessage),
  );
  const untested = count("FAILURE") - failures.length;
  console.log(`${scenario}: ${count("SUCCESS")} passed, ${failures.length} failed, ${untested} not testable here`);
  if (failures.length > 0)
    throw new StartError(failures.map(({ id, errorMessage }) => `${id}: ${errorMessage}`).join("\n"));
}

/** The program cannot send a credential: this adds it, and passes on all else. */
function signedIn(token: string): http.Server {
  return http.createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const { method, url: path } = request;
    const passed = http.request(`${url}${path}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
}
