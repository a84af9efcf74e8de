import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { handler as fanOut } from "../../../../functions/deliveries/intake/fan-out.ts";
import {
  closestName,
  deploymentEventRows,
  eventRow,
  isFinal,
} from "../../../../functions/foundation/events/catalogue.ts";
import { parseDeploymentEvent } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import { sampleFields } from "../../../../functions/foundation/events/sample-event.ts";
import { eventsProblem } from "../../../../lib/event-schemas.ts";
import { carry } from "../../../support/attempts.ts";
import {
  eventOf,
  givenWebhook,
  pipelineBatch,
  takeDeliveryMessages,
  takeMessages,
} from "../../../support/deliveries.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* The events that a stage adds: its option `events`, and the setting EVENTS. */

const canceled = {
  name: "deploy.canceled",
  description: "the deployment was canceled",
  final: true,
  data: {
    type: "object",
    required: ["by"],
    properties: { by: { type: "string", minLength: 2, examples: ["Ada"] }, step: { type: "integer", minimum: 1 } },
  },
};
const queued = { name: "build.queued", description: "a build waits", final: false };
const set = (events: unknown) => {
  process.env.EVENTS = typeof events === "string" ? events : JSON.stringify(events);
};

const service = useService();
const receiver = useReceiver();
const scenario = useScenario(service, () => ({ url: receiver.url }));
beforeEach(() => set([canceled, queued]));
afterEach(() => {
  delete process.env.EVENTS;
});

const reasonOf = (event: object): string | undefined => {
  const message = parseDeploymentEvent(JSON.stringify(event));
  return message.ok ? undefined : message.reason;
};

test("an event of the stage reaches the webhooks that name it, or a pattern for it, and no others", async () => {
  const { webhook } = await givenWebhook({ projectId: scenario.projectId, events: ["deploy.canceled"] });
  const receivers = [webhook];
  for (const events of [["*"], ["deploy.*"], ["build.*"], ["deploy.failed"], ["webhook.*"]]) {
    receivers.push((await givenWebhook({ projectId: scenario.projectId, events })).webhook);
  }
  await fanOut(
    pipelineBatch(eventOf(scenario.projectId, { event: "deploy.canceled", data: { by: "Ada", more: [1] } })),
  );
  const messages = await takeDeliveryMessages();
  const ids = messages.map((message) => (message.kind === "first" ? message.delivery.webhook_id : ""));
  expect(ids.toSorted()).toEqual(
    receivers
      .slice(0, 3)
      .map(({ id }) => id)
      .toSorted(),
  );
});

test.each<[string, object, string]>([
  ["a field is missing", {}, 'data does not fit its schema: Instance does not have required property "by".'],
  [
    "a field has another type",
    { by: 7 },
    'data.by does not fit its schema: Instance type "number" is invalid. Expected "string".',
  ],
  ["a field breaks a rule", { by: "A" }, "data.by does not fit its schema: String is too short (1 < 2)."],
  ["a number is too small", { by: "Ada", step: 0 }, "data.step does not fit its schema: 0 is less than 1."],
])("data that does not fit its schema is a dead letter with the field: %s", async (_, data, reason) => {
  const event = eventOf(scenario.projectId, { event: "deploy.canceled", data });
  await fanOut(pipelineBatch(event));
  expect(await takeMessages("events", "dead letters")).toEqual([{ body: JSON.stringify(event), reason }]);
});

test.each(
  [
    ["deploy.cancelled", "deploy.canceled"],
    ["deploy.success", "deploy.succeeded"],
    ["build.queue", "build.queued"],
    ["Deploy.Failed", "deploy.failed"],
    ["x".repeat(100_000), "deploy.started"],
  ].map(([name = "", closest]) => ({ title: name.slice(0, 20), name, closest })),
)("an unknown event is a dead letter that names the closest one: $title", ({ name, closest }) => {
  const reason = reasonOf(eventOf(scenario.projectId, { event: name }));
  expect(reason).toContain(`is most like ${closest}`);
  expect(reason?.length).toBeLessThan(400);
});

test("names are compared by the number of characters to change", () => {
  expect(closestName("kitten", ["sitting", "mitten", "bitte"])).toBe("mitten");
  expect(closestName("", ["ab", "a"])).toBe("a");
  expect(closestName("a", [])).toBeUndefined();
});

const SLOW = /^data cannot be compared with its schema in a second/;

test.each<[string, object, RegExp]>([
  ["a pattern that repeats a repetition", { properties: { by: { pattern: "^http://(a+)+$" } } }, SLOW],
  ["a reference to itself", { properties: { by: { allOf: [{ $ref: "#/properties/by" }] } } }, SLOW],
  ["a URL", { properties: { by: { format: "url" } } }, /^undefined$/],
])("a hostile text and %s in a schema do not delay other events", (_, data, reason) => {
  expect(eventsProblem([{ ...canceled, data }])).toBeUndefined();
  set([{ ...canceled, data }]);
  const startedAt = performance.now();
  const by = `http://${"a".repeat(40)}!`;
  expect(String(reasonOf(eventOf(scenario.projectId, { event: "deploy.canceled", data: { by } })))).toMatch(reason);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});

test("thousands of broken rules and hostile names do not delay other events, and a reason is short and can be stored", () => {
  const name = `\u0000\u202e${"x".repeat(10_000)}`;
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1]));
  set([{ ...canceled, data: { type: "object", additionalProperties: false } }]);
  const startedAt = performance.now();
  const reason =
    reasonOf(eventOf(scenario.projectId, { event: "deploy.canceled", data: { [name]: 1, ...many } })) ?? "";
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(reason).toContain("data does not fit its schema: Property");
  // SQS refuses control characters in an attribute, and then the dead letter.
  expect(reason).not.toMatch(/\p{Cc}|\u202e/u);
  expect(reason.length).toBeLessThan(2_000);
});

test("numbers beyond a double and hostile names do not fail the validation", () => {
  const data = '{"by":"Ada","step":12345678901234567890,"\\ud800":{"__proto__":1,"constructor":{}}}';
  const body = JSON.stringify(eventOf(scenario.projectId, { event: "deploy.canceled", data: 0 })).replace(
    /"data":0/,
    `"data":${data}`,
  );
  expect(parseDeploymentEvent(body)).toMatchObject({ ok: true });
});

test("the API lists and tests its events, and rejects a name that it does not have", async () => {
  const { data } = (await scenario.api.patch(scenario.path, { events: ["deploy.canceled", "build.*"] })).body;
  expect(data.events).toEqual(["deploy.canceled", "build.*"]);
  const project = `/v1/projects/${scenario.projectId}`;
  expect((await scenario.api.get(`${project}/events?event=build.queued`)).status).toBe(200);
  expect((await scenario.api.get(`${scenario.path}/deliveries?event=deploy.canceled`)).status).toBe(200);
  const sent = await scenario.api.post(`${scenario.path}/test`, { event: "build.queued" });
  expect(sent.body.data).toMatchObject({ event: "build.queued", test: true });
  const byDefault = await scenario.api.post(`${scenario.path}/test`, {});
  expect(byDefault.body.data.event).toBe("deploy.canceled");
  set([]);
  const { body } = await scenario.api.patch(scenario.path, { events: ["deploy.canceled"] });
  expect(body.error.details[0].message).toMatch(/^must be one of deploy.started, .*, or a pattern/);
});

test("an event that the stage no longer has is still shown, filtered and sent", async () => {
  await scenario.api.patch(scenario.path, { events: ["deploy.canceled"] });
  await fanOut(pipelineBatch(eventOf(scenario.projectId, { event: "deploy.canceled", data: { by: "Ada" } })));
  const [message] = await takeDeliveryMessages();
  set([queued]);
  if (message?.kind !== "first") throw new Error("no delivery");
  await carry(message.delivery);
  const listed = (await scenario.api.get(`${scenario.path}/deliveries`)).body.data;
  expect(listed).toMatchObject([{ event: "deploy.canceled", attempt_count: 1 }]);
  expect((await scenario.api.get(scenario.path)).body.data.events).toEqual(["deploy.canceled"]);
});

test("a sample has the examples of the schema, and a value for what is required without one", () => {
  set([
    {
      ...canceled,
      data: {
        type: "object",
        required: ["by", "count"],
        properties: { ...canceled.data.properties, count: { type: "number" } },
      },
    },
  ]);
  const sample = sampleFields(
    "deploy.canceled",
    { projectId: scenario.projectId, id: scenario.webhook.id, now: new Date() },
    { more: 1 },
  );
  expect(sample.data).toEqual({ by: "Ada", count: 1, more: 1 });
  expect(reasonOf(sample)).toBeUndefined();
});

test("the setting may be the path of a file, and defaults are those of the contract", () => {
  const path = join(tmpdir(), `events-${process.pid}.json`);
  writeFileSync(path, JSON.stringify([canceled]));
  set(path);
  expect([...deploymentEventRows().keys()]).toEqual([
    "deploy.started",
    "deploy.succeeded",
    "deploy.failed",
    "deploy.canceled",
  ]);
  expect(eventRow("deploy.canceled")).toMatchObject({ tone: "neutral", final: true });
});

const many = Array.from({ length: 51 }, (_, index) => ({ ...queued, name: `build.${"x".repeat(index + 1)}` }));
test.each<[string, unknown, RegExp]>([
  ["no JSON", "{", /^EVENTS cannot be used\. It is not JSON\. Example: /],
  ["an object", { canceled }, /must be a list/],
  ["too many", many, /at most 50/],
  ["an entry that is no object", ["deploy.canceled"], /Event 0: it must be an object/],
  ["a name without a dot", [{ ...queued, name: "canceled" }], /must be words of a to z/],
  ["a name in upper case", [{ ...queued, name: "deploy.Canceled" }], /must be words of a to z/],
  ["a name that is too long", [{ ...queued, name: `a.${"b".repeat(99)}` }], /of at most 100 characters/],
  ["a name of the contract", [{ ...queued, name: "deploy.failed" }], /the service has this name itself/],
  ["a name of the service", [{ ...queued, name: "webhook.deleted" }], /the service has this name itself/],
  ["a name twice", [queued, queued], /occurs twice/],
  ["no description", [{ ...queued, description: "" }], /must be a sentence/],
  ["a final that is text", [{ ...queued, final: "yes" }], /final must be true or false/],
  ["another tone", [{ ...queued, tone: "sad" }], /tone must be/],
  ["a schema that is a list", [{ ...queued, data: [] }], /must be a JSON Schema/],
  ["a large schema", [{ ...queued, data: { description: "x".repeat(5_000) } }], /at most 4096 bytes/],
  [
    "a schema with many bytes in few characters",
    [{ ...queued, data: { description: "ü".repeat(2_100) } }],
    /at most 4096/,
  ],
  ["an unknown field", [{ ...queued, schema: {} }], /schema is not a known field/],
])("a setting that is not valid is an error with its rule: %s", (_, value, rule) => {
  set(value);
  expect(() => deploymentEventRows()).toThrow(rule);
});

test("an event that the stage has no longer keeps its place after others of the same time", () => {
  set([canceled]);
  const before = ["deploy.started", "deploy.canceled"].map(isFinal);
  set([]);
  expect(["deploy.started", "deploy.canceled"].map(isFinal)).toEqual(before);
});

test.each<[string, object, RegExp]>([
  ["an unknown type", { type: "strng" }, /"build.queued": data is not a valid JSON Schema: .*type/],
  ["a misspelled keyword", { type: "object", propertys: {} }, /unknown keyword: "propertys"/],
  ["a reference to nothing", { $ref: "#/$defs/none" }, /can't resolve reference/],
  ["a reference to itself without end", { $ref: "#" }, /Maximum call stack size exceeded/],
  ["a reference to another schema", { $ref: "https://json-schema.org/draft/2020-12/schema" }, /Unresolved \$ref/],
  ["a keyword of OpenAPI 3.0", { type: "string", nullable: true }, /unknown keyword: "nullable"/],
  ["a pattern that is none", { type: "string", pattern: "(" }, /Invalid regular expression/],
])("a schema that is not valid stops a start and a synthesis: %s", (_, data, rule) => {
  expect(eventsProblem([{ ...queued, data }])).toMatch(rule);
  expect(eventsProblem([canceled, queued])).toBeUndefined();
});
