import { type Engine, runToEnd, withServer } from "./engine.ts";

const PORT = 5_056;
const endpoint = `http://127.0.0.1:${PORT}`;

/**
 * Tests whose resources are in the engines that they are given. The others of test/functions need what moto 5.2 lacks: it counts no
 * capacity units, takes a transaction that is sent again for another one, and undoes with a rejected one what other requests have
 * written to its tables meanwhile.
 */
const tests = ["functions/calls", "delivery-queue", "bin/smoke.test", "faults/(aws-faults|sweep-faults|write-once)"];

export const engine: Engine = {
  summary: "a service on moto's DynamoDB and SQS: thousands of deliveries, the smoke test, all endpoints, faults",
  programs: ["moto_server"],
  install: "pipx install 'moto[server]'",
  run: () =>
    withServer(["moto_server", "-H", "127.0.0.1", "-p", String(PORT)], endpoint, {}, async () => {
      const env = { TEST_ENGINES: endpoint };
      await runToEnd(["npm", "run", "--silent", "bench", "--", "kills"], { env });
      const paths = tests.map((path) => `test/.*${path}`);
      await runToEnd(["npm", "run", "--silent", "jest", "--", "--ci", ...paths], { env });
    }),
};
