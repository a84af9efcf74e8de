import { randomUUID } from "node:crypto";
import type { EndpointRow } from "../../../../functions/foundation/manifest/endpoints.ts";
import { endpointRows, functionRow } from "../../../../functions/foundation/manifest/function-rows.ts";
import { workerRows } from "../../../../functions/foundation/manifest/workers.ts";
import { document, type Json } from "../../../support/api-contract.ts";
import { useService } from "../../../support/service.ts";
import { validBodyOf } from "../../../support/valid-bodies.ts";

/*
 * What a caller can make the service return and store with the largest input that is accepted. Generated from the rows: a new
 * endpoint or field needs no test code here.
 */

const MAX_BODY_BYTES = 64 * 1024;
const MAX_RESPONSE_BYTES = 16 * 1024;

const service = useService();
let admin: ReturnType<typeof service.user>;
let project: string;
beforeAll(async () => {
  admin = service.user();
  project = await service.project(admin.userId);
});

/** Repeats an item as often as a body of 64 KB has room for. */
const many = (item: unknown): unknown[] => {
  const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
  return Array(Math.floor((MAX_BODY_BYTES - 2_000) / bytes)).fill(item);
};
/** Replaced in the text of a body: JSON.stringify cannot write what is nested so deeply. */
const nested: Record<string, string> = {
  "<lists>": `${"[".repeat(8_000)}1${"]".repeat(8_000)}`,
  "<objects>": `${'{"a":'.repeat(8_000)}1${"}".repeat(8_000)}`,
};
const bodyText = (body: unknown): string =>
  JSON.stringify(body).replace(/"(<(?:lists|objects)>)"/, (_, name: string) => nested[name] ?? "");
const keys = (count: number, name: (index: number) => string, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), value]));

const hostileValues: [title: string, value: unknown][] = [
  ["a list of numbers", many(0)],
  ["a list of null", many(null)],
  ["a list of empty texts", many("")],
  ["a list of UUIDs", many(randomUUID())],
  ["a list of texts with escaped characters", many("\u0007\u0007")],
  ["a list of objects", many({ a: 1 })],
  ["a list of lists", many([0])],
  ["twenty wrong values", Array(20).fill(0)],
  ["a hundred wrong values", Array(100).fill({ name: "\u0007".repeat(90) })],
  ["lists in lists", "<lists>"],
  ["objects in objects", "<objects>"],
  ["a long text", "x".repeat(60_000)],
  ["a long text of control characters", "\u0007".repeat(10_000)],
  ["a long text of emoji", "\u{1f4a5}".repeat(15_000)],
  ["a long text of digits", "9".repeat(60_000)],
  ["an object of many fields", keys(6_000, String, 0)],
  ["an object with a long field", { ["k".repeat(60_000)]: [0] }],
  ["an object with a long field of control characters", { ["\u0007".repeat(10_000)]: [0] }],
  [
    "five fields with long names and twenty wrong values",
    keys(5, (n) => `${n}${"\u{1f4a5}".repeat(99)}`, Array(20).fill(0)),
  ],
  ["five fields with twenty objects", keys(5, (n) => `${n}${"\\".repeat(99)}`, Array(20).fill({ a: 1 }))],
  ["five fields with many wrong values", keys(5, (n) => `${n}${"x".repeat(99)}`, many(0).slice(0, 6_000))],
];

const operationOf = ({ method, path }: EndpointRow): Json => document.paths[path][method.toLowerCase()];
const schemaOf = (row: EndpointRow): Json => operationOf(row).requestBody?.content["application/json"].schema;

function* hostileBodies(row: EndpointRow): Generator<[title: string, body: unknown]> {
  const schema = schemaOf(row);
  if (schema === undefined) return;
  const valid = JSON.parse(validBodyOf(row) ?? "{}");
  for (const [title, value] of hostileValues) {
    yield [`${title} as the body`, value];
    yield [`${title} as an unknown field`, { ...valid, unknown: value }];
    for (const name of Object.keys(schema.properties)) yield [`${title} as ${name}`, { ...valid, [name]: value }];
  }
  const all = Object.keys(schema.properties).map((name) => [name, keys(5, (n) => `${n}${"x".repeat(99)}`, [0, 0, 0])]);
  yield ["wrong values in all fields", Object.fromEntries(all)];
}

const pathOf = ({ path }: EndpointRow, id = randomUUID() as string) =>
  path.replace("{project_id}", project).replaceAll(/\{\w+\}/g, id);

/** Sends a request and returns the length of the response, with its title if it is too long or a 5xx. */
async function problemOf(title: string, path: string, init: RequestInit): Promise<string[]> {
  const response = await fetch(service.baseUrl + path, {
    ...init,
    headers: { authorization: `Bearer ${admin.token}`, "content-type": "application/json", ...init.headers },
  });
  const { length } = Buffer.from(await response.arrayBuffer());
  const headers = [...response.headers].join().length;
  const isRight = response.status < 500 && length <= MAX_RESPONSE_BYTES && headers <= 8_000;
  return isRight ? [] : [`${title}: ${response.status}, ${length} bytes, ${headers} in headers`];
}

test.each(endpointRows)(
  "$method $path returns at most 16 KB for hostile bodies, queries, headers and ids",
  async (row) => {
    const { method } = row;
    const problems: string[] = [];
    const sendAs = async (title: string, path: string, init: RequestInit = {}) =>
      void problems.push(...(await problemOf(title, path, { method, ...init })));
    for (const [title, body] of hostileBodies(row)) {
      const text = bodyText(body);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_BODY_BYTES);
      await sendAs(title, pathOf(row), { body: text });
    }
    const long = "%F0%9F%92%A5".repeat(600);
    const names: string[] = (operationOf(row).parameters ?? []).flatMap((each: Json) =>
      each.in === "query" ? each.name : [],
    );
    for (const name of names) {
      for (const value of [long, "x".repeat(7_000), "9".repeat(7_000)])
        await sendAs(name, `${pathOf(row)}?${name}=${value}`);
    }
    await sendAs("an unknown parameter", `${pathOf(row)}?${long}=${long}`);
    await sendAs("many parameters", `${pathOf(row)}?${Array.from({ length: 1_500 }, (_, n) => `p${n}=1`).join("&")}`);
    await sendAs("a long id", pathOf(row, long));
    await sendAs("a long repeat key", pathOf(row), { headers: { "idempotency-key": "k".repeat(7_000) } });
    expect(problems).toEqual([]);
  },
);

/** The largest payload of a call, and the largest response. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html */
const MAX_PAYLOAD_BYTES = 6 * 1024 * 1024;

/** A row of a list in a field of the input; its other fields are wrong too. */
const wrongRow = {
  hash: 0,
  user_id: "\u0007".repeat(900),
  name: "\u0007".repeat(200),
  filter: keys(5, (n) => `${n}${"\\".repeat(99)}`, Array(20).fill(0)),
};
const listsOf: Record<string, { field: string; others?: object }> = {
  "api-keys-import": { field: "keys" },
  "webhooks-import": { field: "webhooks" },
  "projects-sync-members": { field: "members", others: { version: 1 } },
  "credentials-verify": { field: "credentials" },
  "api-keys-provision": { field: "permissions", others: { user_id: "ann", name: "ci" } },
};

test.each(workerRows.flatMap(({ trigger, id }) => (trigger.kind === "invoke" ? [id] : [])))(
  "%s returns less than Lambda's limit for the largest list of wrong rows",
  async (id) => {
    const { handler } = await import(`../../../../functions/${functionRow(id).file}.ts`);
    const { field, others } = listsOf[id] ?? { field: "unknown" };
    for (const row of [0, "x", wrongRow, { ...wrongRow, user_id: 0, name: 0 }]) {
      const room = Math.floor(MAX_PAYLOAD_BYTES / (Buffer.byteLength(JSON.stringify(row)) + 1));
      for (const count of [1_000, 5_000, room].filter((each) => each <= room)) {
        const input = { [field]: Array(count).fill(row), ...others };
        const returned = await handler(input).catch(({ name, message, details }: Json) => ({ name, message, details }));
        expect(Buffer.byteLength(JSON.stringify(returned))).toBeLessThan(MAX_PAYLOAD_BYTES - 1_000_000);
      }
    }
  },
);
