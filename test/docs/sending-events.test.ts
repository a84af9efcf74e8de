import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import {
  deploymentEvents,
  eventNames,
  ownEventsProblem,
  usualFields,
} from "../../functions/foundation/manifest/events.ts";
import { queues, retentionSeconds } from "../../functions/foundation/manifest/queues.ts";
import { messageOf } from "../../functions/webhooks/formats/message.ts";
import { eventsProblem } from "../../lib/event-schemas.ts";

/* docs/sending-events.md: its examples are valid, and its reasons are those of dead letters. */

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/sending-events.md"), "utf8");
const text = page.replaceAll(/\s+/g, " ");

function section(heading: string): string {
  const [, rest = ""] = page.split(new RegExp(`^## ${heading}$`, "m"));
  return rest.split(/^## /m)[0] ?? "";
}

const jsonIn = (heading: string) => JSON.parse(/```json\n([\s\S]*?)```/.exec(section(heading))?.[1] ?? "null");

/** The cells of the rows of a section's table, below its head. */
const rowsIn = (heading: string): string[][] =>
  section(heading)
    .split("\n")
    .filter((line) => /^\| (?!---)/.test(line))
    .slice(1)
    .map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, "")));

const event = jsonIn("The event");
const own = jsonIn("Events of your own");
const receivedAt = new Date("2026-11-21T04:04:30Z");

beforeAll(() => {
  process.env.EVENTS = JSON.stringify(own);
});
afterAll(() => {
  delete process.env.EVENTS;
});

/** The message of a row: whole, or fields in place of those of the event at the top, or that event without a field. */
function messageOfRow(cell: string): string {
  const [, left = ""] = /^without `(\w+)`$/.exec(cell) ?? [];
  if (left !== "") return JSON.stringify({ ...event, [left]: undefined });
  const code = cell.replaceAll(/^`|`$/g, "");
  return code.startsWith('"') ? JSON.stringify({ ...event, ...JSON.parse(`{${code}}`) }) : code;
}

test("the event at the top is valid, and its fields are those of the table", () => {
  expect(parseDeploymentEvent(JSON.stringify(event), receivedAt)).toMatchObject({
    ok: true,
    event: { data: event.data },
  });
  expect(rowsIn("The event").map(([field]) => field)).toEqual(Object.keys(event).map((field) => `\`${field}\``));
  for (const name of eventNames) expect(section("The event")).toContain(`\`${name}\``);
});

test.each(rowsIn("Rejected messages"))("%s is a dead letter with the reason of the page", (sent = "", reason = "") => {
  expect(parseDeploymentEvent(messageOfRow(sent), receivedAt)).toEqual({
    ok: false,
    reason: reason.replaceAll(/^`|`$/g, ""),
  });
});

test("the table of reasons has every rule of the code", () => {
  const source = readFileSync(join(root, "functions/foundation/events/parse-deployment-event.ts"), "utf8");
  const rules = [...source.matchAll(/"((?:the message |timestamp |data )?(?:is|must be) [^"]+)"/g)].map(
    ([, rule = ""]) => rule,
  );
  expect(rules.length).toBeGreaterThan(7);
  const reasons = rowsIn("Rejected messages").map(([, reason = ""]) => reason);
  expect(rules.filter((rule) => !reasons.some((reason) => reason.includes(rule)))).toEqual([]);
});

test("the events of the page's own are valid", () => {
  expect(eventsProblem(own)).toBeUndefined();
  const fields = new Set(rowsIn("Events of your own").map(([field = ""]) => field.replaceAll("`", "")));
  expect(fields).toEqual(new Set(Object.keys(own[0])));
});

test("the page has the limits of events, and of a stage's own", () => {
  const many = Array.from({ length: 51 }, (_, index) => ({
    name: `a.b${"c".repeat(index)}`,
    description: "d",
    final: true,
  }));
  const [limit] = /\d+/.exec(ownEventsProblem(many) ?? "") ?? [];
  expect(text).toContain(`A stage has at most ${limit}.`);
  const [bytes = ""] =
    /\d+(?= bytes)/.exec(ownEventsProblem([{ ...own[0], data: { x: "x".repeat(9_999) } }]) ?? "") ?? [];
  expect(text).toContain(`up to ${Number(bytes).toLocaleString("en-GB")} bytes`);
  expect(text).toContain(`more than ${queues.events.maxMessageBytes / 1024} KB`);
  expect(text).toContain(`kept for ${retentionSeconds / 86_400} days`);
});

test("the page shows the message that chats get of its event, and every usual field", () => {
  const { line, link } = messageOf({
    ...event,
    deliveryId: "",
    tone: deploymentEvents["deploy.failed"].tone,
    sequence: "1",
    isTest: false,
  });
  expect(text).toContain(`\`${line}\`, with a link to the log`);
  expect(link?.title).toBe("Log");
  const named = rowsIn("What chats show")
    .map(([field]) => field)
    .join();
  expect(Object.keys(usualFields).filter((name) => !named.includes(`\`${name}\``))).toEqual([]);
});
