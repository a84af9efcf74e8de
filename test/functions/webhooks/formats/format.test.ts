import { AdaptiveCard } from "adaptivecards";
import { type CloudEvent, HTTP } from "cloudevents";
import fc from "fast-check";
import { formatted, type WebhookFormat, webhookFormats } from "../../../../functions/webhooks/formats/format.ts";
import { formatLabels, formatOfUrl } from "../../../../functions/webhooks/formats/format-of-url.ts";
import { escapedTo, type FormattedEvent } from "../../../../functions/webhooks/formats/message.ts";

/* The forms of the products, with their limits and escapes. AdaptiveCard and CloudEvents are judged by libraries of others. */

type Format = Exclude<WebhookFormat, "standard">;
const formats = webhookFormats.filter((format) => format !== "standard");
const chats = ["slack", "discord", "teams", "google-chat"] as const;

const event: FormattedEvent = {
  deliveryId: "01930000-0000-7000-8000-00000000d401",
  event: "deploy.failed",
  project_id: "01930000-0000-7000-8000-00000000d301",
  deployment_id: "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11",
  timestamp: "2026-11-21T04:04:29.027Z",
  data: {},
  tone: "bad",
  sequence: "17952418690271",
  isTest: false,
};
const details = "deploy.failed · deployment 0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11 · 2026-11-21T04:04:29.027Z";
const full = {
  project: "Shop",
  environment: "production",
  branch: "main",
  commit: "1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b",
  actor: "Ada",
  duration_seconds: 72,
  reason: "health check timed out",
  url: "https://shop.example.com",
  logs_url: "https://ci.example.com/runs/1?a=b&c=d",
};
const line = "❌ Shop: deploy failed in production (main, 1a2b3c4) by Ada after 1 min 12 s: health check timed out";

// biome-ignore lint/suspicious/noExplicitAny: the shapes of five products
const sent = (format: Format, changes: Partial<FormattedEvent> = {}): any =>
  JSON.parse(formatted(format, { ...event, ...changes }).body);

/** The line of a message, as the product would show it. */
const shownIn = (format: (typeof chats)[number], changes: Partial<FormattedEvent>): string => {
  const message = sent(format, changes);
  if (format === "slack") return message.blocks[0].text.text;
  if (format === "teams") return message.attachments[0].content.body[0].inlines[0].text;
  if (format === "google-chat") return message.text.split("\n")[0].replace(/ <http[^>]*>$/, "");
  return message.content
    .split("\n-# ")[0]
    .replace(/ \[\w+\]\(<[^>]*>\)$/, "")
    .replaceAll(/\\(.)/g, "$1");
};

test.each<[string, Partial<FormattedEvent>, string]>([
  ["all usual fields", { data: full }, line],
  ["no data", {}, "❌ project 01930000: deploy failed"],
  ["a test", { isTest: true, tone: "good", event: "deploy.succeeded" }, "[Test] ✅ project 01930000: deploy succeeded"],
  [
    "an event of the platform",
    { event: "deploy.rolled_back", tone: "neutral" },
    "🔵 project 01930000: deploy rolled back",
  ],
  [
    "an event about a webhook",
    {
      event: "webhook.failing",
      deployment_id: null,
      data: { name: "CI", host: "ci.example.com", error_code: "timeout" },
    },
    "❌ project 01930000: webhook failing (CI, ci.example.com): timeout",
  ],
  [
    "a short commit and a number",
    { data: { commit: "v1.2", branch: 7 } },
    "❌ project 01930000: deploy failed (7, v1.2)",
  ],
  ["seconds", { data: { duration_seconds: 59.4 } }, "❌ project 01930000: deploy failed after 59 s"],
  [
    "seconds as some languages write them",
    { data: { duration_seconds: JSON.rawJSON("72.0") } },
    "❌ project 01930000: deploy failed after 1 min 12 s",
  ],
  ["hours", { data: { duration_seconds: 3_660 } }, "❌ project 01930000: deploy failed after 1 h 1 min"],
  [
    "values of other types",
    {
      data: {
        project: {},
        environment: [],
        branch: null,
        commit: true,
        duration_seconds: "72",
        reason: "",
        actor: "  ",
      },
    },
    "❌ project 01930000: deploy failed",
  ],
  [
    "lines, control characters and directions",
    { data: { reason: "a\r\nb\u0000c\u202ed\u200b\ud800e" } },
    "❌ project 01930000: deploy failed: a b c d \ufffde",
  ],
  [
    "a long reason, cut",
    { data: { reason: "é".repeat(400) } },
    `❌ project 01930000: deploy failed: ${"é".repeat(299)}…`,
  ],
])("in each chat, a person reads one line: %s", (_, changes, expected) => {
  expect(chats.map((chat) => shownIn(chat, changes))).toEqual(chats.map(() => expected));
});

test("the messages have the form of each product, with the link to the log of a failure", () => {
  const data = { ...full, reason: "<!channel> & *x*" };
  const text = line.replace("health check timed out", "&lt;!channel&gt; &amp; *x*");
  expect(sent("slack", { data })).toEqual({
    text,
    blocks: [
      { type: "section", text: { type: "plain_text", text: line.replace("health check timed out", data.reason) } },
      {
        type: "context",
        elements: [
          { type: "mrkdwn", text: `<https://ci.example.com/runs/1?a=b&amp;c=d|Log> · ${details}`, verbatim: true },
        ],
      },
    ],
  });
  expect(sent("discord", { data })).toEqual({
    content: expect.stringMatching(
      /: \\<!channel\\> & \\\*x\\\* \[Log\]\(<https:\/\/ci.example.com\/runs\/1\?a=b&c=d>\)\n-# deploy.failed/,
    ),
    allowed_mentions: { parse: [] },
    flags: 4,
  });
  expect(sent("google-chat", { data }).text).toContain(
    ": ‹!channel› & *x* <https://ci.example.com/runs/1?a=b&c=d|Log>\n",
  );
  const run = (text: string, style: object) => ({
    type: "RichTextBlock",
    inlines: [{ type: "TextRun", text, ...style }],
  });
  expect(sent("teams", { data }).attachments[0].content).toMatchObject({
    actions: [{ type: "Action.OpenUrl", title: "Log", url: full.logs_url }],
    body: [
      run(line.replace("health check timed out", data.reason), { weight: "Bolder", color: "Attention" }),
      run(details, { size: "Small", isSubtle: true }),
    ],
  });
  const good = sent("teams", { data, tone: "good" }).attachments[0].content;
  expect([good.actions[0].title, good.body[0].inlines[0].color]).toEqual(["Open", "Good"]);
  expect(sent("teams").attachments[0].content).not.toHaveProperty("actions");
});

test("the content type is that of JSON, except for CloudEvents", () => {
  const types = formats.map((format) => formatted(format, event).contentType);
  expect(new Set(types)).toEqual(new Set(["application/json", "application/cloudevents+json"]));
  expect(types.indexOf("application/cloudevents+json")).toBe(formats.indexOf("cloudevents"));
  expect(types.lastIndexOf("application/cloudevents+json")).toBe(formats.indexOf("cloudevents"));
});

test.each([
  ["abc", "abc"],
  ["abcd", "abc…"],
  ["a<<", "a…"],
  ["", ""],
])("%j is cut to four units as %j, and no escape is cut", (text, expected) => {
  expect(escapedTo(4, text, (character) => (character === "<" ? "&lt;" : character))).toBe(expected);
});

test("a link that Slack would have too long with its escapes is left out", () => {
  const { blocks } = sent("slack", { data: { ...full, logs_url: `https://ci.example.com/?${"&".repeat(900)}` } });
  expect(blocks[1].elements[0].text.length).toBeLessThanOrEqual(3_000);
  expect(blocks[1].elements[0].text).toContain(details);
});

test("a card is valid for the library of Adaptive Cards, and runs no function of its text", () => {
  const card = sent("teams", { data: { ...full, reason: "{{{DATE(2026-01-01T00:00:00Z, SHORT)}} <at>all</at>" } });
  expect(card).toMatchObject({
    type: "message",
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive" }],
  });
  const { content } = card.attachments[0];
  const parsed = new AdaptiveCard();
  parsed.parse(content);
  expect(parsed.validateProperties().validationEvents).toEqual([]);
  expect(JSON.stringify(content)).not.toContain("{{");
});

test("a CloudEvent is read by the library of CloudEvents, with the data unchanged", () => {
  const data = { ...full, nested: { list: [1, null, "é"] } };
  const { body, contentType } = formatted("cloudevents", { ...event, data });
  const read = HTTP.toEvent({ headers: { "content-type": contentType }, body }) as CloudEvent;
  expect(read.validate()).toBe(true);
  expect(read).toMatchObject({ id: event.deliveryId, type: event.event, subject: event.deployment_id, data });
  expect(read.source).toBe(`/v1/projects/${event.project_id}`);
  expect(read.sequence).toBe(event.sequence);
  expect(sent("cloudevents", { deployment_id: null })).not.toHaveProperty("subject");
});

test("a repository_dispatch has at most ten fields and 64 KB, and says so when it has less than the event", () => {
  const small = {
    event: event.event,
    project_id: event.project_id,
    deployment_id: event.deployment_id,
    timestamp: event.timestamp,
  };
  expect(sent("github-dispatch", { data: full })).toEqual({
    event_type: "deploy.failed",
    client_payload: { ...small, data: full },
  });
  for (const [log, thousands] of [
    ["x".repeat(200_000), 200],
    ["é".repeat(31_000), 62],
  ] as const) {
    expect(sent("github-dispatch", { data: { log } }).client_payload).toEqual({
      ...small,
      data: { truncated: true, note: expect.stringMatching(new RegExp(`^data has ${thousands}\\d{3} bytes`)) },
    });
  }
  expect(sent("github-dispatch", { event: `deploy.${"x".repeat(200)}` }).event_type).toHaveLength(100);
});

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 2_000 }),
  fc.constantFrom(
    "@everyone",
    "<!channel>",
    "<@U123>",
    "<at>all</at>",
    "<users/all>",
    "](http://x)",
    "|",
    "\\",
    "`".repeat(1_000),
  ),
  fc.string({ minLength: 1, maxLength: 5 }).map((text) => text.repeat(2_000)),
);
const anyData = fc.dictionary(
  fc.constantFrom(...Object.keys(full), "name", "host", "error_code", "__proto__", "constructor"),
  fc.oneof(
    anyText,
    fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>,
    fc.constantFrom(Number.NaN, -1, 1e308, 'https://a.example/<b>|c(d)"e'),
  ),
);

test.each(formats)(
  "%s never throws, stays within its limits, and gives the same bytes again, for any data",
  (format) => {
    fc.assert(
      fc.property(anyData, fc.boolean(), (data, isTest) => {
        const { body } = formatted(format, { ...event, data, isTest });
        expect(formatted(format, { ...event, data: structuredClone(data), isTest }).body).toBe(body);
        expect(body.isWellFormed()).toBe(true);
        const message = JSON.parse(body);
        if (format === "slack") {
          for (const text of [message.text, message.blocks[0].text.text, message.blocks[1].elements[0].text]) {
            expect(text.length).toBeLessThanOrEqual(3_000);
          }
          expect(message.text).not.toMatch(/[<>]/);
          expect(message.blocks[1].elements[0].text.replace(/^<https?:[^<>|]*\|\w+> /, "")).not.toMatch(/[<>]/);
        }
        if (format === "discord") {
          expect(message.content.length).toBeLessThanOrEqual(2_000);
          expect(
            message.content
              .replaceAll(/\\./gs, "")
              .replace(/\[\w+\]\(<[^<>]*>\)/, "")
              .replace("\n-# ", ""),
          ).not.toMatch(/[@<>*_`[\]]/);
        }
        if (format === "teams") expect(Buffer.byteLength(body)).toBeLessThanOrEqual(28_000);
        if (format === "google-chat") {
          expect(message.text.length).toBeLessThanOrEqual(4_096);
          expect(message.text.replace(/<https?:[^<>|]*\|\w+>/, "")).not.toMatch(/[<>]/);
        }
        if (format === "github-dispatch") expect(Buffer.byteLength(body)).toBeLessThanOrEqual(64_000);
      }),
      { numRuns: 300 },
    );
  },
);

test.each<[string, string | undefined]>([
  ["https://hooks.slack.com/services/T0/B0/x", "slack"],
  ["https://hooks.slack-gov.com/services/T0/B0/x", "slack"],
  ["https://hooks.slack.com/triggers/T0/1/x", undefined],
  ["https://hooks.slack.com.evil.example/services/T0/B0/x", undefined],
  ["https://discord.com/api/webhooks/123/abc-_DEF", "discord"],
  ["https://ptb.discord.com/api/v10/webhooks/123/abc?wait=true", "discord"],
  ["https://discord.com/api/webhooks/123/abc/slack", undefined],
  ["https://contoso.webhook.office.com/webhookb2/x", "teams"],
  ["https://prod-12.westeurope.logic.azure.com:443/workflows/x/triggers/manual/paths/invoke?sig=y", "teams"],
  ["https://default1.2.environment.api.powerplatform.com:443/powerautomate/automations/x", "teams"],
  ["https://chat.googleapis.com/v1/spaces/AAA/messages?key=k&token=t", "google-chat"],
  ["https://api.github.com/repos/acme/shop/dispatches", "github-dispatch"],
  ["https://api.github.com/repos/acme/shop/issues", undefined],
  ["http://hooks.slack.com/services/T0/B0/x", undefined],
  ["", undefined],
])("%s gives away the format %s", (url, format) => {
  expect(formatOfUrl(url)).toBe(format);
});

test("each format has a name for people", () => {
  expect(Object.keys(formatLabels)).toEqual([...webhookFormats]);
});
