import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintToken } from "../command/mint-token.ts";
import { demoUser } from "../demo/demo-user.ts";
import { type Engine, runToEnd, withServer } from "./engine.ts";

const PORT = 5_059;
const url = `http://127.0.0.1:${PORT}`;
const document = join(import.meta.dirname, "../../docs/openapi.json");

/**
 * The check of which all findings are by design. It wants 2xx for all that the schemas allow, and they cannot say that
 * a cursor is that of an earlier response, a key of an Idempotency-Key, or an event one of this stage.
 */
const EXCLUDED = "positive_data_acceptance";

export const engine: Engine = {
  summary: "requests that Schemathesis generates from docs/openapi.json, alone and in chains, with all checks but one",
  programs: ["schemathesis"],
  install: "pipx install schemathesis",
  async run({ seed, minutes }) {
    const folder = mkdtempSync(join(tmpdir(), "engines-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    // Only one project exists, and its id is not guessed.
    const project = { type: "string", enum: [demoUser.projectId] };
    const contract = JSON.parse(readFileSync(document, "utf8"), (name, value) =>
      name === "project_ids" && value.items ? { ...value, items: project, maxItems: 1 } : value,
    );
    contract.components.parameters.project_id.schema = project;
    const path = join(folder, "openapi.json");
    writeFileSync(path, JSON.stringify(contract));
    const JWT_SECRET = randomBytes(32).toString("hex");
    // No name of a receiver is looked up on the internet.
    const env = { DATA_DIR: folder, PORT: String(PORT), SQS_PORT: "0", JWT_SECRET, DNS_SERVERS: "127.0.0.1:9" };
    const service = ["--url", url, "-H", `Authorization: Bearer ${mintToken(JWT_SECRET, demoUser.userId)}`];
    const checks = ["--checks", "all", "--exclude-checks", EXCLUDED, "--continue-on-failure"];
    const time = ["--seed", seed, "--max-time", String(60 * Number(minutes))];
    const quiet = ["--warnings", "off", "--suppress-health-check", "all"];
    await withServer([process.execPath, "bin/run.cjs", "local"], url, { env }, () =>
      runToEnd(["schemathesis", "run", path, ...service, ...checks, ...time, ...quiet], { cwd: folder }),
    );
  },
};
