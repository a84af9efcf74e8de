import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { GetSecretValueCommand } from "@aws-sdk/client-secrets-manager";
import { ListTopicsCommand } from "@aws-sdk/client-sns";
import { ListQueuesCommand } from "@aws-sdk/client-sqs";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isOutage, secretsManager, sns, sqs } from "../../../../functions/foundation/platform/aws.ts";

const sockets: net.Socket[] = [];
/** Accepts connections and never responds. */
const server = net.createServer((socket) => sockets.push(socket));

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const name of ["DYNAMODB", "SQS", "SNS", "SECRETS_MANAGER"]) process.env[`AWS_ENDPOINT_URL_${name}`] = endpoint;
  process.env.AWS_MAX_ATTEMPTS = "1";
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

test("a call without a response fails after three seconds as an outage, with every client", async () => {
  const started = performance.now();
  const errors = await Promise.all(
    [
      dynamo().send(new GetCommand({ TableName: "t", Key: { id: "1" } })),
      sqs().send(new ListQueuesCommand()),
      sns().send(new ListTopicsCommand()),
      secretsManager().send(new GetSecretValueCommand({ SecretId: "s" })),
    ].map((call: Promise<unknown>) => call.catch((error: unknown) => error)),
  );
  const seconds = (performance.now() - started) / 1000;
  expect(errors).toEqual(Array(4).fill(expect.objectContaining({ name: "TimeoutError" })));
  expect(errors.map(isOutage)).toEqual([true, true, true, true]);
  expect(seconds).toBeGreaterThan(2.9);
  for (const { config } of [dynamo(), sqs(), sns(), secretsManager()]) {
    const handler = config.requestHandler as { httpHandlerConfigs?(): object };
    expect(handler.httpHandlerConfigs?.()).toMatchObject({
      connectionTimeout: 3_000,
      requestTimeout: 3_000,
      throwOnRequestTimeout: true,
    });
  }
});
