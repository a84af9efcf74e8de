import { type Engine, runToEnd, withServer } from "./engine.ts";

const PORT = 5_056;
const endpoint = `http://127.0.0.1:${PORT}`;

/** Tests whose resources are in the engines that they are given. A folder means all files in it. */
const tests = ["functions", "bin/smoke.test", "faults/(aws-faults|sweep-faults|write-once)"].map(
  (path) => `test/${path}`,
);

export const engine: Engine = {
  summary: "a service on moto's DynamoDB and SQS: thousands of deliveries, the smoke test, all endpoints, faults",
  programs: ["moto_server"],
  install: "pipx install 'moto[server]'",
  run: () =>
    withServer(["moto_server", "-H", "127.0.0.1", "-p", String(PORT)], endpoint, {}, async () => {
      const env = { AWS_ENDPOINT_URL_DYNAMODB: endpoint, AWS_ENDPOINT_URL_SQS: endpoint };
      await runToEnd(["npm", "run", "--silent", "bench", "--", "kills"], { env });
      await runToEnd(["npm", "run", "--silent", "jest", "--", "--ci", ...tests], { env: { TEST_ENGINES: endpoint } });
    }),
};
