import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import fc from "fast-check";
import { handler as fanOut } from "../../../../functions/deliveries/intake/fan-out.ts";
import { carry, firstAttempt, visitLine, watchMessages } from "../../../support/attempts.ts";
import { restoreAws } from "../../../support/aws-calls.ts";
import { closeAfterFile } from "../../../support/cleanup.ts";
import {
  eventOf,
  makeDue,
  pipelineBatch,
  sqsEvent,
  takeDeliveryMessages,
  takeMessages,
} from "../../../support/deliveries.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/*
 * Names that strangers choose, from the wire to the row and back through the API: headers and trailers of a response, fields of
 * an event's data and of a filter. No name may keep an attempt from being recorded.
 */

/** Names that mean something to JavaScript, to the SDK or to DynamoDB. */
const names = [
  ...Object.getOwnPropertyNames(Object.prototype),
  ...["then", "toJSON", "length", "name", "prototype", "size", "N", "S", "M", "L", "NULL", "BOOL", "wrappedValue"],
  ...["id", "status", "version", "place", "attempts", "0", "-1", "_", "!", "~", "a.b", "#n"],
];

let response: Buffer;
const server = net.createServer((socket) => {
  socket.on("error", () => {});
  socket.once("data", () => socket.end(response));
});
let url: string;
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeAfterFile(() => server.close());
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});

const service = useService();
beforeAll(() => {
  process.env.RETRY_SCHEDULE = "1";
});
const scenario = useScenario(service, () => ({ url }));
afterAll(() => {
  delete process.env.RETRY_SCHEDULE;
});
afterEach(() => takeDeliveryMessages());

interface Reply {
  headers: [name: string, value: string][];
  trailers?: [name: string, value: string][];
  body?: Uint8Array;
}

function respond({ headers, trailers = [], body = Buffer.from("no") }: Reply): void {
  const lines = (pairs: [string, string][]) => pairs.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = `HTTP/1.1 500 Oops\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n${lines(headers)}\r\n`;
  const chunk = body.length === 0 ? [] : [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n")];
  const end = Buffer.from(`0\r\n${lines(trailers)}\r\n`, "latin1");
  response = Buffer.concat([Buffer.from(head, "latin1"), ...chunk, end]);
}

/**
 * Publishes an event, makes the first attempt, and a retry, which writes again what was read.
 * @returns the delivery as the API shows it
 */
async function deliverTwice(reply: Reply, data: object = {}) {
  respond(reply);
  const sent = watchMessages();
  const event = eventOf(scenario.projectId, { data });
  expect(await fanOut(pipelineBatch(event))).toEqual({ batchItemFailures: [] });
  const [carried] = sent.flatMap(({ message }) => (message.kind === "first" ? message.delivery : []));
  if (!carried) throw new Error("no delivery was enqueued");
  await carry(sqsEvent(firstAttempt(carried)));
  await makeDue(scenario.webhook);
  await visitLine(scenario.webhook);
  expect(sent.filter(({ message }) => message.kind === "unrecorded")).toEqual([]);
  restoreAws();
  await Promise.all([takeMessages("deliveries"), takeMessages("slowDeliveries")]);
  const { status, body } = await scenario.api.get(`${scenario.path}/deliveries/${carried.id}`);
  expect(status).toBe(200);
  expect(body.data).toMatchObject({ status: "failed", attempts: [{ status_code: 500 }, { status_code: 500 }] });
  expect(body.data.payload).toEqual(JSON.parse(JSON.stringify(event)));
  return body.data;
}

/** A webhook that fails waits for its next probe. */
const heal = () => scenario.api.patch(scenario.path, { url: `${url}?${Math.random()}` });

const tokens = names.filter((name) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name));
test.each([...Object.getOwnPropertyNames(Object.prototype), "then", "toJSON", "wrappedValue"])(
  "an attempt is recorded, and shown with its headers, when the receiver returns the header %s",
  async (name) => {
    const { attempts } = await deliverTwice({ headers: [[name, "x"]], trailers: [[name, "y"]] });
    // Node leaves this one out.
    const shown = name === "__proto__" ? null : { [name.toLowerCase()]: "x" };
    expect(attempts.map(({ response_headers }: { response_headers: unknown }) => response_headers)).toEqual([
      shown,
      shown,
    ]);
  },
);

test("an attempt is recorded whatever headers, trailers and body it got, and whatever fields its event has", async () => {
  const token = fc.oneof(fc.constantFrom(...tokens), fc.stringMatching(/^[!#$%&'*+.^_`|~a-zA-Z0-9-]{1,40}$/));
  const safe = token.filter((name) => !/^(content-length|transfer-encoding|connection|trailer|upgrade)$/i.test(name));
  const value = fc
    .array(fc.constantFrom(..."\t !az09~\x80\xc3\xa9\xff"), { maxLength: 40 })
    .map((all) => all.join("").trim());
  const pairs = fc.array(fc.tuple(safe, value), { maxLength: 15 });
  const reply = fc.record({ headers: pairs, trailers: pairs, body: fc.uint8Array({ maxLength: 1_500 }) });
  const field = fc.oneof(fc.constantFrom(...names), fc.string());
  const data = fc.array(fc.tuple(field, fc.jsonValue({ maxDepth: 4 }))).map((all) => JSON.parse(toJson(all)));
  await fc.assert(
    fc.asyncProperty(reply, data, async (given, fields) => {
      await heal();
      const { attempts } = await deliverTwice(given, fields);
      for (const { response_headers, response_excerpt } of attempts) {
        const sent = new Set(given.headers.map(([name]) => name.toLowerCase()));
        for (const name of Object.keys(response_headers ?? {})) expect(sent).toContain(name);
        expect(Buffer.byteLength(response_excerpt ?? "")).toBeLessThanOrEqual(1_024);
      }
    }),
    { numRuns: 40, examples: [[{ headers: [["Constructor", "x"]], trailers: [], body: Buffer.alloc(0) }, {}]] },
  );
}, 60_000);

/** An object as JSON that has every name, also `__proto__`, which a literal would take for the prototype. */
const toJson = (fields: [string, unknown][]): string =>
  `{${[...new Map(fields)]
    .filter(([name, value]) => !(name === "test" && value === true))
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join(",")}}`;

test("a filter with any name is stored as it was sent, or rejected", async () => {
  const field = fc.oneof(fc.constantFrom(...names), fc.string({ minLength: 1, maxLength: 20, unit: "binary" }));
  await fc.assert(
    fc.asyncProperty(field, fc.stringMatching(/^[a-z]{1,9}$/), async (name, value) => {
      const body = JSON.parse(`{"filter":${toJson([[name, [value]]])}}`);
      const { status } = await scenario.api.patch(scenario.path, body);
      expect([200, 400]).toContain(status);
      if (status === 400)
        return expect(["__proto__", "constructor"].includes(name) || /\p{C}|\s/u.test(name)).toBe(true);
      expect((await scenario.api.get(scenario.path)).body.data.filter).toEqual(body.filter);
    }),
    { numRuns: 100, examples: names.map((name): [string, string] => [name, "main"]) },
  );
  await scenario.api.patch(scenario.path, { filter: null });
}, 60_000);
