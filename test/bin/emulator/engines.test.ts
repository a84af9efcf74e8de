import { ChildProcess } from "node:child_process";
import type { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { CreateQueueCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { jest } from "@jest/globals";
import type { FauxqsServer } from "fauxqs";
import { StartError } from "../../../bin/command/start-error.ts";
import { type Engine, startDynamo, startSqs } from "../../../bin/emulator/engines.ts";
import { startQueueEngine } from "../../../bin/emulator/queue-engine.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";

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

  test("finds a free address for each of many; on Linux, for more than there are ports", async () => {
    const length = process.platform === "linux" ? 20 : 10;
    const endpoints = (await Promise.all(Array.from({ length }, start))).map(({ endpoint }) => endpoint);
    expect(new Set(endpoints).size).toBe(length);
    for (const endpoint of endpoints)
      await expect(fetch(endpoint)).rejects.toMatchObject({ cause: { message: "bad port" } });
  });

  test("takes the next address when one is in use, and is reported when all are", async () => {
    const { hostname: host, port } = new URL((await start()).endpoint);
    const inUse = { host, port: Number(port) };
    await expect(startDynamo(undefined, () => {}, [inUse])).rejects.toThrow(/ are all in use\. /);
    const free = { host, port: await freePort() };
    const engine = await startDynamo(undefined, () => {}, [inUse, free]);
    engines.push(engine);
    expect(engine.endpoint).toBe(`http://${host}:${free.port}`);
  });

  test("is reported when it cannot use its file", async () => {
    await expect(startDynamo("/dev/null", () => {})).rejects.toThrow(
      /did not start\. Check that \/dev\/null can be used/,
    );
  });

  const OTHER_ENGINE =
    "start DynamoDB Local or LocalStack and set AWS_ENDPOINT_URL_DYNAMODB to its address, such as http://127.0.0.1:8000.";

  test.each([
    ["sunos", "x64", "There is no embedded DynamoDB engine for sunos-x64. To run here,"],
    [
      "darwin",
      "arm64",
      "The embedded DynamoDB engine is missing (@dynoxide/darwin-arm64 is not installed). Run npm install again, or",
    ],
    ["win32", "x64", "The embedded DynamoDB engine does not run on Windows. Use WSL (Windows Subsystem for Linux), or"],
  ])("is reported with what to do on %s-%s, without an engine", async (platform, arch, message) => {
    const pretend = (as: { platform: string; arch: string }) =>
      Object.defineProperties(process, { platform: { value: as.platform }, arch: { value: as.arch } });
    const here = { platform: process.platform, arch: process.arch };
    pretend({ platform, arch });
    try {
      await expect(startDynamo(undefined, () => {})).rejects.toThrow(new StartError(`${message} ${OTHER_ENGINE}`));
    } finally {
      pretend(here);
    }
  });
});

describe("the SQS engine", () => {
  let engine: Engine;
  let port: number;
  let sqs: SQSClient;
  beforeAll(async () => {
    engine = await startSqs(0, undefined, () => {});
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

  const namedBy = (Host: string) => ({ ...listQueues, Host });
  const forming = (Origin: string) => ({ ...form, Origin });

  test.each<[string, Record<string, string>, body?: string, method?: string]>([
    ["a form of a page, which could subscribe the queue to a topic", forming(origin), "Action=ListTopics"],
    ["a form of a page without an origin of its own", forming("null"), "Action=ListTopics"],
    ["a call of a page", { ...listQueues, Origin: origin }],
    ["a call under a name that leads to this machine", namedBy("page.example")],
    ["a call under a name that begins with that of this machine", namedBy("localhost.page.example")],
    ["a call under a name that ends with that of this machine", namedBy("evil-localhost:3001")],
    ["an image of a page", { "Sec-Fetch-Site": "cross-site" }, "", "GET"],
    ["a preflight", preflight, "", "OPTIONS"],
  ])("rejects %s", async (_title, headers, body = "{}", method = "POST") => {
    expect(await call(headers, body, method)).toEqual({ status: 403, readableBy: undefined });
  });

  test.each(["127.0.0.1", "localhost", "LOCALHOST:3001", "[::1]:3001", "sqs.us-east-1.localhost:3001"])(
    "accepts a call of a program at %s",
    async (host) => {
      expect(await call({ ...listQueues, Host: host }, "{}")).toMatchObject({ status: 200 });
    },
  );

  test("is reported when it cannot use its folder", async () => {
    const starting = startSqs(0, "/dev/null", () => {});
    await expect(starting).rejects.toThrow(/^The embedded SQS engine did not start: .*\/dev\/null/);
    await expect(starting).rejects.toBeInstanceOf(StartError);
  });
});

test.each<[string, { prototype: EventEmitter }, (onExit: () => void) => Promise<Engine>]>([
  ["DynamoDB", ChildProcess, (onExit) => startDynamo(undefined, onExit)],
  ["SQS", Worker, (onExit) => startSqs(0, undefined, onExit)],
])(
  "the %s engine reports that it has ended on its own, and not that it was stopped",
  async (_, { prototype }, start) => {
    let ends = 0;
    const once = jest.spyOn(prototype, "once");
    const engines = [await start(() => ends++), await start(() => ends++)];
    const [part] = once.mock.contexts;
    once.mockRestore();
    await engines[1]?.stop();
    expect(ends).toBe(0);
    await (part instanceof Worker ? part.terminate() : (part as ChildProcess).kill());
    await eventually(() => expect(ends).toBe(1));
  },
);

describe("the SQS engine with a data directory", () => {
  let dataDir: string;
  // In this thread, where its file is known.
  let engine: FauxqsServer;
  let sqs: SQSClient;
  let QueueUrl: string;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "engines-"));
    await start();
    await sqs.send(new CreateQueueCommand({ QueueName: "events" }));
  });
  afterEach(async () => {
    sqs.destroy();
    await engine.stop();
    rmSync(dataDir, { recursive: true });
  });

  async function start(): Promise<void> {
    engine = await startQueueEngine(0, dataDir);
    const endpoint = `http://127.0.0.1:${engine.port}`;
    sqs = new SQSClient({ ...client, endpoint, maxAttempts: 1 });
    QueueUrl = `${endpoint}/000000000000/events`;
  }
  const send = (MessageBody: string) => sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
  const receive = async () => (await sqs.send(new ReceiveMessageCommand({ QueueUrl }))).Messages ?? [];

  test("flushes no write to the disk before its response, and changes no other SQLite file", async () => {
    const prepare = jest.spyOn(DatabaseSync.prototype, "prepare");
    await engine.stop();
    await start();
    const [file] = prepare.mock.contexts as DatabaseSync[];
    prepare.mockRestore();
    const levelOf = (database: DatabaseSync) => database.prepare("PRAGMA synchronous").get()?.synchronous;
    // 1 is NORMAL, 2 is FULL. With a journal, NORMAL flushes only when the journal is copied into the file.
    expect([file?.prepare("PRAGMA journal_mode").get()?.journal_mode, file && levelOf(file)]).toEqual(["wal", 1]);
    const other = new DatabaseSync(":memory:");
    other.exec("PRAGMA journal_mode = WAL");
    expect(levelOf(other)).toBe(2);
    other.close();
  });

  test("has its messages after a restart, and rejects an invalid one before any write", async () => {
    await expect(send("\u0001")).rejects.toThrow("Invalid characters");
    await send("two");
    sqs.destroy();
    await engine.stop();
    await start();
    expect((await receive()).map(({ Body }) => Body)).toEqual(["two"]);
  });
});
