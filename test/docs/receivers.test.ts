import { spawnSync } from "node:child_process";
import crypto, { createHmac, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { ScanCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { type Delivery, type Options, verifyWebhook } from "../../docs/receivers/node/verify-webhook.mjs";
import { isPassed, probes } from "../../functions/deliveries/certification/certification.ts";
import { probeRequests } from "../../functions/deliveries/certification/probe-requests.ts";
import type { webhookEventNames } from "../../functions/foundation/manifest/events.ts";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { signatureHeaders } from "../../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../../functions/webhooks/webhook/webhook.ts";
import { eventually } from "../support/eventually.ts";
import { needs } from "../support/optional-program.ts";
import { receiverLanguages, runReceiverInShell } from "../support/receiver-languages.ts";
import { keys, publicKeyVectors, type Vector, vectors, vectorWithLeadingZeros } from "../support/vectors.ts";

/* The receivers in docs/receivers accept the deliveries of the service and reject all others. */

const root = join(import.meta.dirname, "../..");
const receivers = join(root, "docs/receivers");
const expectedResult = ({ valid, error }: Vector) => (valid ? "verified" : String(error));

const work = mkdtempSync(join(tmpdir(), "receivers-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));
afterEach(() => jest.restoreAllMocks());

const secret = generateSecret(randomBytes(32));
const event = {
  event: "deploy.succeeded",
  project_id: randomUUID(),
  deployment_id: randomUUID(),
  timestamp: "2026-11-21T04:04:29.027Z",
  data: { url: "https://my-shop.example.app", status: "running", message: "Grüße, 世界 🚀" },
};
const body = JSON.stringify(event);

interface SigningOptions {
  deliveryId?: string;
  at?: Date;
  signedBody?: string;
  signedWith?: string;
}

/** Returns the headers of a delivery; by default, of one that is sent now. */
function headersOf({
  deliveryId = randomUUID(),
  at = new Date(),
  signedBody = body,
  signedWith = secret,
}: SigningOptions = {}) {
  return signatureHeaders({ deliveryId, at, body: signedBody }, signedWith);
}

/** Returns the requests of a certification, sent now. */
const newProbes = () =>
  probeRequests({
    certificationId: randomUUID(),
    webhook: { project_id: randomUUID(), events: ["deploy.succeeded"] },
    secrets: [secret],
    foreignSecret: generateSecret(randomBytes(32)),
    now: new Date(),
    randomId: randomUUID,
  });

/** Sends the requests of a certification to an example. @returns the checks that do not pass */
async function failedProbes(send: (body: string, headers: Record<string, string>) => Promise<number>) {
  const requests = newProbes();
  const failed: [probe: string, status: number][] = [];
  for (const probe of probes) {
    const { "Content-Type": type = "", ...headers } = requests[probe].headers;
    const status_code = await send(requests[probe].body, { ...headers, "content-type": type });
    const isSuccess = status_code >= 200 && status_code < 300;
    const result = { duration_ms: 0, status_code, ...(!isSuccess && { error_code: "http_status" as const }) };
    if (!isPassed(probe, result)) failed.push([probe, status_code]);
  }
  return failed;
}

describe("the test vectors", () => {
  test("are signed as the service signs, with the keys that they list", () => {
    for (const { name, scheme, headers, body: text, secrets } of vectors.filter(({ valid }) => valid)) {
      const sent = new Headers(headers);
      const [id, timestamp] = [sent.get("webhook-id") ?? "", sent.get("webhook-timestamp") ?? ""];
      const isStandard = scheme === "standard";
      const given = isStandard ? ["webhook-signature"] : ["X-Service-Signature", "X-Service-Signature-Previous"];
      const signatures = given.flatMap((header) => sent.get(header)?.split(/,? /) ?? []);
      const delivery = { deliveryId: id, at: new Date(1000 * Number(timestamp)), body: text };
      const own = secrets.map((each) => new Headers(signatureHeaders(delivery, each)).get(given[0] ?? "") ?? "");
      expect([name, own.some((signature) => signatures.includes(signature))]).toEqual([name, true]);
      const digests = secrets.map((each) => {
        const { standard_key_hex = "", body_key_hex = "" } = keys.find(({ secret: listed }) => listed === each) ?? {};
        const key = Buffer.from(isStandard ? standard_key_hex : body_key_hex, "hex");
        const hmac = createHmac("sha256", key).update(isStandard ? `${id}.${timestamp}.${text}` : text);
        return hmac.digest(isStandard ? "base64" : "hex");
      });
      expect([name, digests.some((digest) => signatures.join().includes(digest))]).toEqual([name, true]);
    }
  });

  test("have unique names, and a code and an explanation when they are invalid", () => {
    expect(new Set(vectors.map(({ name }) => name)).size).toBe(vectors.length);
    for (const { valid, error, why } of vectors) {
      if (valid) expect(error).toBeUndefined();
      else expect([error, why]).not.toContain(undefined);
    }
    for (const scheme of ["standard", "body"])
      expect(new Set(vectors.filter((each) => each.scheme === scheme).map(({ valid }) => valid)).size).toBe(2);
  });

  const standard = vectors.filter(({ scheme }) => scheme === "standard");
  test.each([
    ["standardwebhooks", StandardWebhook],
    ["svix", SvixWebhook],
  ])("give the same results in the package %s", (_, Webhook) => {
    for (const { name, secrets, body: text, headers, now, valid } of standard) {
      jest.spyOn(Date, "now").mockReturnValue(now * 1000);
      // These packages accept only one secret.
      const accepts = (each: string) => {
        try {
          const { body_key_hex, standard_key_hex } = keys.find(({ secret: text }) => text === each) ?? {};
          // How these packages accept a secret that is itself the key.
          const isKey = standard_key_hex === body_key_hex;
          const webhook = isKey ? new Webhook(Buffer.from(each), { format: "raw" }) : new Webhook(each);
          webhook.verify(text, headers);
          return true;
        } catch {
          return false;
        }
      };
      expect([name, secrets.some(accepts)]).toEqual([name, valid]);
    }
  });
});

// test/packages/client/verify-webhook.test.ts has the other tests, which are those of the client too.
test("verifyWebhook has types for exactly the events of the service", () => {
  // Does not compile when an event is missing in the JSDoc of verify-webhook.mjs, or is none of the service.
  type TypedEvent = Delivery["payload"]["event"];
  type WebhookEventName = (typeof webhookEventNames)[number];
  const isSame: [TypedEvent, WebhookEventName] extends [WebhookEventName, TypedEvent] ? true : false = true;
  expect(isSame).toBe(true);
});

test("verifyWebhook has the type of an own event, which changes none of the service's", () => {
  const own = { ...event, event: "build.succeeded", data: { artifact: "shop.tar" } };
  const text = JSON.stringify(own);
  type Own = { event: "build.succeeded"; data: { artifact: string } };
  const { payload } = verifyWebhook<Own>({ body: text, headers: headersOf({ signedBody: text }), secret });
  // Does not compile when `event` does not decide the type of `data`.
  const read = (): [string, string] | undefined => {
    if (payload.data.test === true) return undefined;
    if (payload.event === "build.succeeded") return [payload.deployment_id, payload.data.artifact];
    if (payload.event === "deploy.succeeded") return [payload.deployment_id, payload.data.url];
    return undefined;
  };
  expect(read()).toEqual([own.deployment_id, "shop.tar"]);
});

/** A running receiver, built from an example. */
interface RunningReceiver {
  /** Sends a request, and returns status and text of the response. */
  send(body: string, headers: Record<string, string>): Promise<{ status: number; text: string }>;
  stop(): Promise<void>;
}

type Accept = (delivery: Delivery) => Promise<void>;
interface Example {
  name: string;
  start(options: { secret: string | undefined; accept: Accept }): Promise<RunningReceiver>;
}

/** Imports an example. They are JavaScript, and some of their dependencies have no types. */
const importExample = (name: string) => import(join(receivers, "node", `${name}.mjs`));

/** In parts, each below any limit. A stream is sent without Content-Length, so the receiver does not know the size in advance. */
function streamOf(raw: string): ReadableStream {
  const bytes = Buffer.from(raw);
  const starts = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, index) => index * 65_536);
  return ReadableStream.from(starts.map((start) => bytes.subarray(start, start + 65_536)));
}

async function post(url: string, raw: string, headers: Record<string, string>) {
  const response = await fetch(url, {
    method: "POST",
    body: streamOf(raw),
    duplex: "half",
    headers: { "content-type": "application/json", ...headers },
  } as RequestInit);
  return { status: response.status, text: await response.text() };
}

const examples: Example[] = [
  {
    name: "Express",
    async start(options) {
      const { default: express } = await import("express" as string);
      const { webhooks } = await importExample("express");
      const app = express().use("/webhooks", webhooks(options)).use(express.json());
      const server = app.listen(0, "127.0.0.1");
      await once(server, "listening");
      const url = `http://127.0.0.1:${server.address().port}/webhooks`;
      return {
        send: (raw, headers) => post(url, raw, headers),
        async stop() {
          server.closeAllConnections();
          await new Promise((resolve) => server.close(resolve));
        },
      };
    },
  },
  {
    name: "Fastify",
    async start(options) {
      const { default: fastify } = await import("fastify" as string);
      const { webhooks } = await importExample("fastify");
      // The rest of an app may have another limit.
      const app = fastify({ forceCloseConnections: true, bodyLimit: 1_000 });
      app.register(webhooks, { prefix: "/webhooks", ...options });
      await app.listen({ port: 0, host: "127.0.0.1" });
      const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/webhooks`;
      return { send: (raw, headers) => post(url, raw, headers), stop: () => app.close() };
    },
  },
  {
    name: "Next.js",
    async start(options) {
      const { webhooks } = await importExample("next");
      const POST = webhooks(options);
      return {
        async send(raw, headers) {
          const init = { method: "POST", body: streamOf(raw), duplex: "half", headers } as RequestInit;
          try {
            const response: Response = await POST(new Request("https://receiver.example/webhooks", init));
            return { status: response.status, text: await response.text() };
          } catch {
            // Next.js responds with 500 when a handler throws.
            return { status: 500, text: "" };
          }
        },
        async stop() {},
      };
    },
  },
];

describe.each(examples)("the example for $name", ({ start }) => {
  let running: Awaited<ReturnType<Example["start"]>>;
  const processed: unknown[] = [];
  beforeAll(async () => {
    const { createInbox } = await importExample("inbox");
    const inbox = createInbox((payload: unknown) => processed.push(payload));
    running = await start({ secret, accept: inbox.accept });
  });
  beforeEach(() => processed.splice(0));
  afterAll(() => running.stop());

  test("responds 204 to a delivery and processes it", async () => {
    expect((await running.send(body, headersOf())).status).toBe(204);
    await eventually(() => expect(processed).toEqual([event]));
  });

  test("responds 204 to a repeated delivery and does not process it twice", async () => {
    const deliveryId = randomUUID();
    for (const secondsAgo of [60, 30, 0]) {
      const at = new Date(Date.now() - secondsAgo * 1000);
      expect((await running.send(body, headersOf({ deliveryId, at }))).status).toBe(204);
    }
    expect((await running.send(body, headersOf())).status).toBe(204);
    await eventually(() => expect(processed).toHaveLength(2));
  });

  test("responds 401 with the failed check, and processes nothing", async () => {
    const { status, text } = await running.send(body, headersOf({ signedBody: `${body} ` }));
    expect([status, text]).toEqual([401, JSON.stringify({ error: "no_matching_signature" })]);
    expect(processed).toEqual([]);
  });

  test("passes the certification, and processes none of its deliveries", async () => {
    expect(await failedProbes(async (raw, headers) => (await running.send(raw, headers)).status)).toEqual([]);
    await running.send(body, headersOf());
    await eventually(() => expect(processed).not.toEqual([]));
    expect(processed).toEqual([event]);
  });

  test("responds 401 to a request without a body", async () => {
    expect((await running.send("", headersOf())).status).toBe(401);
  });

  test("reads the raw body for every content type", async () => {
    const headers = { ...headersOf(), "content-type": "text/plain; charset=utf-16" };
    expect((await running.send(body, headers)).status).toBe(204);
    await eventually(() => expect(processed).toEqual([event]));
  });

  test("responds 413 to a body over 1 MB, and reads one of 1 MB", async () => {
    expect((await running.send("x".repeat(1_000_000), {})).status).toBe(401);
    const large = JSON.stringify({ ...event, data: "x".repeat(1_100_000) });
    expect((await running.send(large, headersOf({ signedBody: large }))).status).toBe(413);
    expect(processed).toEqual([]);
  });

  test("accepts an event of the maximum size", async () => {
    const large = JSON.stringify({ ...event, data: "ü".repeat(200_000) });
    expect((await running.send(large, headersOf({ signedBody: large }))).status).toBe(204);
    await eventually(() => expect(processed).toHaveLength(1));
  });
});

describe.each(examples)("the example for $name, if the receiver itself fails,", ({ start }) => {
  const failing: Accept = () => Promise.reject(new Error("the database is down"));
  test.each<[string, { secret: string | undefined; accept: Accept }]>([
    ["accept rejects", { secret, accept: failing }],
    ["the secret is not set", { secret: undefined, accept: async () => {} }],
  ])("responds 500, so that the delivery is retried, when %s", async (_, options) => {
    const running = await start(options);
    try {
      expect((await running.send(body, headersOf())).status).toBe(500);
    } finally {
      await running.stop();
    }
  });
});

describe("the inbox of the examples", () => {
  test("responds before it processes the delivery", async () => {
    const { createInbox } = await importExample("inbox");
    const done: string[] = [];
    const inbox = createInbox(async () => done.push("processed"));
    await inbox.accept({ id: "1", payload: event });
    done.push("responded");
    await eventually(() => expect(done).toEqual(["responded", "processed"]));
  });

  test("processes a redelivery after the first processing failed", async () => {
    const { createInbox } = await importExample("inbox");
    const logError = jest.spyOn(console, "error").mockImplementation(() => {});
    let attempts = 0;
    const inbox = createInbox(async () => {
      attempts += 1;
      if (attempts === 1) throw new Error("the deploy board is down");
    });
    await inbox.accept({ id: "1", payload: event });
    await eventually(() => expect(logError).toHaveBeenCalledTimes(1));
    await inbox.accept({ id: "1", payload: event });
    await inbox.accept({ id: "1", payload: event });
    await eventually(() => expect(attempts).toBe(2));
  });

  test("removes the oldest ids above its maximum", async () => {
    const { createInbox } = await importExample("inbox");
    const processed: unknown[] = [];
    const inbox = createInbox(({ data }: { data: unknown }) => processed.push(data));
    const accept = async (id: number) => inbox.accept({ id: String(id), payload: { ...event, data: { id } } });
    for (let id = 0; id <= 10_000; id += 1) await accept(id);
    await accept(10_000);
    await accept(0);
    await eventually(() => expect(processed).toHaveLength(10_002));
    expect(processed.at(-1)).toEqual({ id: 0 });
  });
});

describe("the example for Lambda", () => {
  let handler: (event: object) => Promise<{ statusCode: number; body?: string }>;
  const table = `inbox-${randomUUID()}`;
  const invoke = (raw: string, headers: Record<string, string>, isBase64Encoded = false) =>
    handler({ headers, body: isBase64Encoded ? Buffer.from(raw).toString("base64") : raw, isBase64Encoded });
  const rows = async () => (await dynamo().send(new ScanCommand({ TableName: table }))).Items ?? [];

  beforeAll(async () => {
    Object.assign(process.env, { WEBHOOK_SECRET: secret, INBOX_TABLE: table });
    await dynamo().send(
      new CreateTableCommand({
        TableName: table,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      }),
    );
    ({ handler } = await importExample("lambda"));
  });
  afterAll(() => {
    for (const name of ["WEBHOOK_SECRET", "INBOX_TABLE"]) delete process.env[name];
  });

  test.each([
    ["as text (API Gateway)", false],
    ["in base64 (function URL)", true],
  ])("stores a delivery that arrives %s", async (_, isBase64Encoded) => {
    const deliveryId = randomUUID();
    expect((await invoke(body, headersOf({ deliveryId }), isBase64Encoded)).statusCode).toBe(204);
    const row = (await rows()).find(({ id }) => id === deliveryId);
    expect(JSON.parse(row?.payload)).toEqual(event);
    // In seconds: DynamoDB never deletes a row whose time is in milliseconds.
    expect(Math.round(row?.expires_at / 86_400 - Date.now() / 86_400_000)).toBe(30);
  });

  test("responds 204 to repeated deliveries and stores one, also for concurrent ones", async () => {
    const deliveryId = randomUUID();
    const before = (await rows()).length;
    const send = () => invoke(body, headersOf({ deliveryId }));
    const first = await send();
    // What the processing adds to the row must survive a repeated delivery.
    const processed = new UpdateCommand({
      TableName: table,
      Key: { id: deliveryId },
      UpdateExpression: "SET is_processed = :true",
      ExpressionAttributeValues: { ":true": true },
    });
    await dynamo().send(processed);
    const responses = [first, ...(await Promise.all([send(), send(), send()]))];
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([204, 204, 204, 204]);
    expect(await rows()).toHaveLength(before + 1);
    expect((await rows()).find(({ id }) => id === deliveryId)).toMatchObject({ is_processed: true });
  });

  test("responds 401 with the failed check, and stores nothing", async () => {
    const before = (await rows()).length;
    const response = { statusCode: 401, body: JSON.stringify({ error: "no_matching_signature" }) };
    expect(await invoke(body, headersOf({ signedBody: `${body} ` }))).toEqual(response);
    expect(await rows()).toHaveLength(before);
  });

  test("passes the certification, and stores none of its deliveries", async () => {
    const before = (await rows()).length;
    expect(await failedProbes(async (raw, headers) => (await invoke(raw, headers)).statusCode)).toEqual([]);
    expect(await rows()).toHaveLength(before);
  });

  test("responds 413 to a body over 1 MB, and 401 without a body", async () => {
    const large = "x".repeat(1_000_001);
    expect(await invoke(large, headersOf({ signedBody: large }))).toEqual({ statusCode: 413 });
    expect((await invoke(large.slice(1), {})).statusCode).toBe(401);
    expect((await handler({ headers: headersOf() })).statusCode).toBe(401);
  });

  test("throws when it cannot store the delivery, so that it is retried", async () => {
    process.env.INBOX_TABLE = `${table}-gone`;
    await expect(invoke(body, headersOf())).rejects.toThrow();
    process.env.INBOX_TABLE = table;
  });
});

/* Each language verifies all vectors in one run of its interpreter, which prints one line per vector. */

const probeErrors: Record<string, Vector["error"]> = {
  forged_signature: "no_matching_signature",
  stale_timestamp: "timestamp_too_old",
  cut_body: "no_matching_signature",
};

/** The requests of a certification, as vectors. */
const probeVectors = Object.entries(newProbes()).map(([probe, { headers, body }]): Vector => {
  const error = probeErrors[probe];
  const now = Math.floor(Date.now() / 1000);
  const vector = {
    name: `certification: ${probe}`,
    scheme: "standard" as const,
    secrets: [secret],
    body,
    headers,
    now,
  };
  return error ? { ...vector, valid: false, error } : { ...vector, valid: true, test: true };
});
const all = [...vectors, ...publicKeyVectors, ...probeVectors, vectorWithLeadingZeros];

const languages = receiverLanguages(work);

/** Python verifies a public key with a package that it may not have. */
const hasCryptography = spawnSync("python3", ["-c", "import cryptography"], { stdio: "ignore" }).status === 0;
const checkedBy = ({ name }: { name: string }): Vector[] =>
  name === "Python" && !hasCryptography ? all.filter((vector) => !publicKeyVectors.includes(vector)) : all;

for (const language of languages) {
  needs(language.program).test(
    `the receiver for ${language.name} gives the expected result for every vector and every request of a certification`,
    () => {
      const checked = checkedBy(language);
      const lines = language.run(checked);
      const results = lines.map((line, index) => [checked[index]?.name, line.split(" ")[0]]);
      expect(results).toEqual(checked.map((vector) => [vector.name, expectedResult(vector)]));
      if (language.name === "the shell") return;
      // The returned id and event must equal those of the Node receiver, and the test deliveries must be recognized.
      const expected = checked.map((vector) => {
        if (!vector.valid) return expectedResult(vector);
        const { scheme, secrets, headers, now } = vector;
        const options: Options = { body: vector.body, headers, secret: secrets, scheme, now: new Date(now * 1000) };
        const { id, payload } = verifyWebhook(options);
        return `verified ${id} ${payload.event ?? ""} ${vector.test ?? false}`;
      });
      expect(lines).toEqual(expected);
    },
  );
}

needs("openssl").describe("the receiver for the shell", () => {
  const file = join(work, "empty.json");
  beforeAll(() => writeFileSync(file, "{}"));
  test.each<[string, Record<string, string>]>([
    ["there is no secret", {}],
    ["the secret is a prefix only", { WEBHOOK_SECRET: "whsec_" }],
    ["the secret has no prefix", { WEBHOOK_SECRET: "0123" }],
    ["openssl does not work", { WEBHOOK_SECRET: secret, PATH: join(work, "no-programs") }],
  ])("does not print verified when %s", (_, env) => {
    for (const args of [
      ["body", file, "sha256="],
      ["standard", file, "id", String(Math.floor(Date.now() / 1000)), "v1,"],
    ]) {
      const { stdout, status } = runReceiverInShell(args, env);
      expect(stdout).not.toContain("verified");
      expect(status).not.toBe(0);
    }
  });
});

/* A comparison that ends at the first difference gives the same results, so only the source shows which one is used. */
test.each([
  ["node/verify-webhook.mjs", /timingSafeEqual\(one, other\)/],
  ["python/verify_webhook.py", /hmac\.compare_digest\(_bytes\(one\), _bytes\(other\)\)/],
  ["go/verify_webhook.go", /hmac\.Equal\(\[\]byte\(one\), \[\]byte\(other\)\)/],
  ["ruby/verify_webhook.rb", /OpenSSL\.secure_compare\(one\.b, other\.b\)/],
  ["php/verify-webhook.php", /hash_equals\(\$one, \$other\)/],
])("%s compares signatures in constant time", (file, comparison) => {
  expect(readFileSync(join(receivers, file), "utf8")).toMatch(comparison);
});

describe("the guide", () => {
  const guide = readFileSync(join(receivers, "README.md"), "utf8");

  // docs.test.ts tests that its links lead to files.
  test("links to all receivers", () => {
    const linked = [...guide.matchAll(/\]\(([^)#]+)\)/g)].map(([, to = ""]) => to);
    const all = readdirSync(receivers, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const names = all.map(({ parentPath, name }) => relative(receivers, join(parentPath, name)));
    expect(linked).toEqual(expect.arrayContaining(names.filter((name) => name !== "README.md")));
  });

  test("lists every error code, and every language uses the same codes", () => {
    const listed = [...guide.matchAll(/^\| `(\w+)` \| /gm)].map(([, code]) => code);
    const codes = [...new Set(vectors.flatMap(({ error }) => error ?? [])), "invalid_payload"];
    expect(listed).toEqual(expect.arrayContaining(codes));
    const files = ["node/verify-webhook.mjs", "python/verify_webhook.py", "go/verify_webhook.go"];
    for (const file of [...files, "ruby/verify_webhook.rb", "php/verify-webhook.php"])
      for (const code of codes) expect(readFileSync(join(receivers, file), "utf8")).toContain(code);
  });
});

describe("the function for Node-RED in docs/receivers", () => {
  const [, page = ""] = readFileSync(join(receivers, "README.md"), "utf8").split("## Ready-made receivers");
  const [, code = ""] = /```js\n(.*?)```/s.exec(page) ?? [];
  // It reads one secret, that of its environment.
  const cases = vectors.filter(({ scheme, secrets }) => scheme === "body" && secrets.length === 1);

  test.each(cases)("responds as the vector says: $name", ({ secrets, headers, body, valid }) => {
    const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    const message = { req: { headers: Object.fromEntries(lowerCase) }, payload: Buffer.from(body) };
    const run = new Function("msg", "env", "crypto", code);
    expect(run(message, { get: () => secrets[0] }, crypto).statusCode).toBe(valid ? 200 : 401);
  });
});
