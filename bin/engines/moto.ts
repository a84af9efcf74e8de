import { type Engine, runToEnd, withServer } from "./engine.ts";
import { checkService, withService } from "./service-on.ts";

const PORT = 5_056;
const endpoint = `http://127.0.0.1:${PORT}`;

export const engine: Engine = {
  summary: "a service on moto's DynamoDB and SQS: smoke test, deliveries, the calls of every endpoint",
  programs: ["moto_server"],
  install: "pipx install 'moto[server]'",
  run: () =>
    withServer(["moto_server", "-H", "127.0.0.1", "-p", String(PORT)], endpoint, async () => {
      process.env.RETRY_SCHEDULE = "1,2,4";
      await withService({ AWS_ENDPOINT_URL_DYNAMODB: endpoint, AWS_ENDPOINT_URL_SQS: endpoint }, checkService);
      delete process.env.RETRY_SCHEDULE;
      const tests = ["test/functions/calls.test.ts"];
      await runToEnd(["npm", "run", "--silent", "jest", "--", "--ci", "-w", "1", ...tests], {
        env: { TEST_ENGINES: endpoint },
      });
    }),
};
