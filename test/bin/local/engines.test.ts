import http from "node:http";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { CreateQueueCommand, ListQueuesCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Engine, startDynamo, startSqs } from "../../../bin/local/engines.ts";

/* The embedded engines accept any credentials. A page that the developer visits must not be able to call them. */

const client = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };

describe("the DynamoDB engine", () => {
  const engines: Engine[] = [];
  const start = async () => {
    const engine = await startDynamo(undefined, () => {});
    engines.push(engine);
    return engine;
  };
  afterAll(() => Promise.all(engines.map((engine) => engine.stop())));

  test("listens where a browser refuses to connect, and the SDK does not", async () => {
    const { endpoint } = await start();
    // Node's fetch has the browsers' list of closed ports.
    await expect(fetch(endpoint)).rejects.toMatchObject({ cause: { message: "bad port" } });
    const dynamo = new DynamoDBClient({ ...client, endpoint });
    expect((await dynamo.send(new ListTablesCommand({}))).TableNames).toEqual([]);
    dynamo.destroy();
  });

  test("finds a free address for each of many", async () => {
    const endpoints = (await Promise.all(Array.from({ length: 10 }, start))).map(({ endpoint }) => endpoint);
    expect(new Set(endpoints).size).toBe(10);
    for (const endpoint of endpoints)
      await expect(fetch(endpoint)).rejects.toMatchObject({ cause: { message: "bad port" } });
  });

  test("is reported when it cannot use its file", async () => {
    await expect(startDynamo("/dev/null", () => {})).rejects.toThrow(
      /did not start\. Check that \/dev\/null can be used/,
    );
  });
});

describe("the SQS engine", () => {
  let engine: Engine;
  let port: number;
  let sqs: SQSClient;
  beforeAll(async () => {
    engine = await startSqs(0, undefined);
    port = Number(new URL(engine.endpoint).port);
    sqs = new SQSClient({ ...client, endpoint: engine.endpoint });
    await sqs.send(new CreateQueueCommand({ QueueName: "events" }));
  });
  afterAll(() => {
    sqs.destroy();
    return engine.stop();
  });

  /** Sends what a page or a program may send. @returns the status, and a header that lets a page read the response */
  function call(headers: Record<string, string>, body: string, method = "POST") {
    return new Promise<{ status: number | undefined; readableBy: unknown }>((resolve, reject) => {
      const request = http.request({ host: "127.0.0.1", port, method, headers, agent: false }, (response) => {
        response.resume();
        const readableBy = response.headers["access-control-allow-origin"];
        response.once("end", () => resolve({ status: response.statusCode, readableBy }));
      });
      request.once("error", reject).end(body);
    });
  }
  const listQueues = { "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues" };
  const form = { "Content-Type": "application/x-www-form-urlencoded" };
  const origin = "https://page.example";
  const preflight = { Origin: origin, "Access-Control-Request-Method": "POST" };

  test.each<[string, Record<string, string>, string, string]>([
    [
      "a form of a page, which could subscribe the queue to a topic",
      { ...form, Origin: origin },
      "Action=ListTopics",
      "POST",
    ],
    ["a form of a page without an origin of its own", { ...form, Origin: "null" }, "Action=ListTopics", "POST"],
    ["a call of a page", { ...listQueues, Origin: origin }, "{}", "POST"],
    ["a call under a name that leads to this machine", { ...listQueues, Host: "page.example" }, "{}", "POST"],
    [
      "a call under a name that begins with that of this machine",
      { ...listQueues, Host: "localhost.page.example" },
      "{}",
      "POST",
    ],
    [
      "a call under a name that ends with that of this machine",
      { ...listQueues, Host: "evil-localhost:3001" },
      "{}",
      "POST",
    ],
    ["an image of a page", { "Sec-Fetch-Site": "cross-site" }, "", "GET"],
    ["a preflight", preflight, "", "OPTIONS"],
  ])("rejects %s", async (_title, headers, body, method) => {
    expect(await call(headers, body, method)).toEqual({ status: 403, readableBy: undefined });
  });

  test.each(["127.0.0.1", "localhost", "LOCALHOST:3001", "[::1]:3001", "sqs.us-east-1.localhost:3001"])(
    "accepts a call of a program at %s",
    async (host) => {
      expect(await call({ ...listQueues, Host: host }, "{}")).toMatchObject({ status: 200 });
    },
  );

  test("accepts calls of the SDK", async () => {
    expect((await sqs.send(new ListQueuesCommand({}))).QueueUrls).toHaveLength(1);
  });
});
