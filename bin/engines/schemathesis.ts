import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demoUser } from "../demo/demo-user.ts";
import { type Engine, runToEnd } from "./engine.ts";
import { withService } from "./service-on.ts";

const document = join(import.meta.dirname, "../../docs/openapi.json");

/**
 * The check of which all findings are by design. It wants 2xx for all that the schemas allow, and they cannot say that a cursor is that
 * of an earlier response, a key of an Idempotency-Key, or an event one of this stage.
 */
const EXCLUDED = "positive_data_acceptance";

export const engine: Engine = {
  summary: "requests that Schemathesis generates from docs/openapi.json, alone and in chains, with all checks but one",
  programs: ["schemathesis"],
  install: "pipx install schemathesis",
  run: ({ seed, minutes }) =>
    withService({}, async ({ baseUrl, token }, folder) => {
      // Only one project exists, and no id of it is guessed.
      const project = { type: "string", enum: [demoUser.projectId] };
      const contract = JSON.parse(readFileSync(document, "utf8"), (name, value) =>
        name === "project_ids" && value.items ? { ...value, items: project, maxItems: 1 } : value,
      );
      contract.components.parameters.project_id.schema = project;
      const path = join(folder, "openapi.json");
      writeFileSync(path, JSON.stringify(contract));
      const service = ["--url", baseUrl, "-H", `Authorization: Bearer ${token}`];
      const checks = ["--checks", "all", "--exclude-checks", EXCLUDED, "--continue-on-failure"];
      const time = ["--seed", seed, "--max-time", String(60 * Number(minutes))];
      const quiet = ["--warnings", "off", "--suppress-health-check", "all"];
      await runToEnd(["schemathesis", "run", path, ...service, ...checks, ...time, ...quiet], { cwd: folder });
    }),
};
