import { randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import type { Command } from "commander";
import { eventNames, webhookEventNames } from "../../../functions/foundation/manifest/events.ts";
import { permissions } from "../../../functions/foundation/manifest/permissions.ts";
import { readSince } from "../../../packages/cli/src/commands/deliveries.ts";
import { readTimeout } from "../../../packages/cli/src/commands/deployments.ts";
import { createProgram } from "../../../packages/cli/src/program.ts";
import { namesOption } from "../../../packages/cli/src/terminal/names-option.ts";
import { svcHere } from "../../support/svc-here.ts";

/* Default values of options, and the values that they accept. */

const allCommands = (command: Command, path = ""): [string, Command][] => [
  [path, command],
  ...command.commands.flatMap((child) => allCommands(child, `${path} ${child.name()}`.trim())),
];

test("options have these defaults and choices", () => {
  const events = [...webhookEventNames];
  const formats = ["standard", "slack", "discord", "teams", "google-chat", "github-dispatch", "cloudevents"];
  const rows = allCommands(createProgram()).flatMap(([path, { options }]) =>
    options.flatMap(({ long, defaultValue, argChoices }) =>
      defaultValue === undefined && argChoices === undefined ? [] : [[`${path} ${long}`, defaultValue, argChoices]],
    ),
  );
  expect(rows).toEqual([
    ["keys create --permission", undefined, [...permissions]],
    ["keys roll --overlap", "1d", undefined],
    ["service-accounts create --role", undefined, ["admin", "viewer"]],
    ["service-accounts create-key --permission", undefined, [...permissions]],
    ["service-accounts roll-key --overlap", "1d", undefined],
    ["webhooks create --events", undefined, events],
    ["webhooks create --mode", undefined, ["live", "shadow"]],
    ["webhooks create --format", undefined, formats],
    ["webhooks create --signatures", undefined, ["hmac", "ed25519", "http"]],
    ["webhooks create --delivery", undefined, ["every", "latest"]],
    ["webhooks stats --window", "24h", ["24h", "7d"]],
    ["webhooks update --events", undefined, events],
    ["webhooks update --mode", undefined, ["live", "shadow"]],
    ["webhooks update --format", undefined, formats],
    ["webhooks update --signatures", undefined, ["hmac", "ed25519", "http"]],
    ["webhooks update --delivery", undefined, ["every", "latest"]],
    ["webhooks rotate --overlap", "1d", undefined],
    ["webhooks test --event", undefined, events],
    [
      "deliveries list --status",
      undefined,
      ["pending", "succeeded", "failed", "held", "cancelled", "shadowed", "superseded"],
    ],
    ["deliveries list --event", undefined, events],
    [
      "deliveries list --error",
      undefined,
      ["http_status", "timeout", "dns_error", "connection_refused", "connection_reset", "tls_error"].concat([
        ...["address_blocked", "invalid_response"],
      ]),
    ],
    ["deliveries list --limit", 20, undefined],
    ["deliveries recover --status", undefined, ["failed", "held", "pending", "shadowed", "superseded"]],
    ["deliveries tail --last", 0, undefined],
    ["deployments list --limit", 20, undefined],
    ["deployments wait --timeout", "20m", undefined],
    ["deployments watch --event", undefined, [...eventNames]],
    ["deployments watch --last", 5, undefined],
    ["events list --event", undefined, [...eventNames]],
    ["events list --limit", 20, undefined],
    ["workflows trust --issuer", "github", undefined],
    [
      "workflows trust --permission",
      undefined,
      ["projects:read", "webhooks:read", "webhooks:write", "deliveries:read", "deliveries:write", "events:read"],
    ],
    ["audit --limit", 20, undefined],
    ["listen --events", undefined, [...eventNames]],
  ]);
});

test.each<[string, number, number]>([
  ["deliveries list --limit", 1, 999_999],
  ["deliveries tail --last", 0, 100],
  ["deployments list --limit", 1, 100],
  ["deployments watch --last", 0, 100],
  ["events list --limit", 1, 10_000],
  ["audit --limit", 1, 100],
])("%s accepts the whole numbers from %i to %i", (name, min, max) => {
  const options = allCommands(createProgram()).flatMap(([path, { options }]) =>
    options.filter(({ long }) => `${path} ${long}` === name),
  );
  const parse = (text: string) => options[0]?.parseArg?.(text, undefined);
  expect([min, max].map((number) => parse(String(number)))).toEqual([min, max]);
  const error = expect.objectContaining({ exitCode: 2, message: expect.stringContaining(`from ${min} to ${max}`) });
  for (const text of [min - 1, max + 1, 1.5, "", " "]) expect(() => parse(String(text))).toThrow(error);
});

const now = new Date("2026-11-21T12:00:00.000Z");

test.each([
  ["45s", "2026-11-21T11:59:15.000Z"],
  ["90min", "2026-11-21T10:30:00.000Z"],
  ["6h", "2026-11-21T06:00:00.000Z"],
  ["3 d", "2026-11-18T12:00:00.000Z"],
  ["0s", "2026-11-21T12:00:00.000Z"],
  ["2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z"],
  ["2026-11-20T08:00:00.5+01:00", "2026-11-20T08:00:00.5+01:00"],
])("readSince converts %s to %s", (text, since) => {
  expect(readSince(text, now)).toBe(since);
});

test.each(["yesterday", "5", "5minutes", "-5min", "1.5h", "2026-11-20", "2026-11-20T08:00:00", "2026-13-20T08:00:00Z"])(
  "readSince rejects %s with exit code 2",
  (text) => {
    expect(() => readSince(text, now)).toThrow(expect.objectContaining({ exitCode: 2 }));
  },
);

const parse = (text: string, previous: unknown): unknown =>
  namesOption("--events <names...>", "", webhookEventNames).parseArg?.(text, previous);

test.each([
  [
    ["deploy.started", "deploy.failed"],
    ["deploy.started", "deploy.failed"],
  ],
  [["deploy.started,deploy.failed"], ["deploy.started", "deploy.failed"]],
  [
    ["deploy.started, deploy.failed", "deploy.succeeded"],
    ["deploy.started", "deploy.failed", "deploy.succeeded"],
  ],
  [["deploy.failed", "deploy.failed,deploy.failed"], ["deploy.failed"]],
])("an option for names converts %j to %j", (values, events) => {
  expect(values.reduce<unknown>((names, text) => parse(text, names), undefined)).toEqual(events);
});

test.each(["everything", "webhooks:reed"])("keys create rejects the permission %s", async (permission) => {
  const args = ["keys", "create", "ci", "--permission", permission];
  await expect(createProgram({ hasJsonErrors: true }).parseAsync(args, { from: "user" })).rejects.toThrow(
    "Valid: projects:read",
  );
});

test.each([
  ["deploy.unknown", `Valid: ${webhookEventNames.join(", ")}.`],
  ["deploy.failed,", `Valid: ${webhookEventNames.join(", ")}.`],
  ["https://example.com/", "Pass the URL before this option."],
])("an option for names rejects %s", (text, message) => {
  expect(() => parse(text, undefined)).toThrow(message);
});

test.each([
  ["1s", 1],
  ["20m", 1_200],
  ["24h", 86_400],
  ["86401s", undefined],
  ["0m", undefined],
  ["20", undefined],
  ["soon", undefined],
])("readTimeout converts %s to %s seconds", (text, seconds) => {
  expect(readTimeout(text)).toBe(seconds);
});

const secret = `whsec_${"0".repeat(64)}`;
const id = randomUUID();
test.each<[string[], string]>([
  [["listen", "--secret", "whsec_1"], "The signing secret is cut off"],
  [["listen", "--secret", secret], "A secret has no use without --forward"],
  [["listen", "--status", "500"], "--status needs --port."],
  [["listen", "--forward", "http://10.0.0.1/"], "--forward must start with https://"],
  [["listen", "--port", "0", "--forward", "http://127.0.0.1/"], "leave out --port"],
  [["listen", "--port", "0", "--events", "deploy.failed"], "leave out --port"],
  [["trigger", "deploy.failed", "--data", "{staging}"], "--data is not a JSON object"],
  [["apply", "-f", "webhooks.yml", "--exit-code"], "--exit-code needs --dry-run."],
  [["trigger", "deploy.failed", "--secret", secret], "A secret has no use without --forward"],
  [["trigger", "deploy.failed", "--forward", "http://10.0.0.1/"], "--forward must start with https://"],
  [["trigger", "deploy.failed", "--forward", "http://127.0.0.1/", "--webhook", "0193"], "Pass --forward or --webhook"],
  [["trigger", "deploy.failed", "--forward", "http://127.0.0.1/", "--project", "shop"], "--project must be an id"],
  [["trigger", "deploy.failed", "--forward", "http://127.0.0.1/", "--secret", "x"], "is cut off, or is another text"],
  [["deliveries", "list", "--deployment", `${id}0`], `${id}0 is not a valid deployment id.`],
  [["webhooks", "delete", `0${id}`], `0${id} is not a whole id.`],
  [["keys", "delete", id.slice(0, 20), "--yes"], "is not a full id."],
  [["webhooks", "update", "--filter", "production"], "production is not a field and a value."],
  [["webhooks", "update"], "Nothing to change."],
  [["webhooks", "update", "--header", "A: 1", "--remove-headers"], "Pass --header or --remove-headers, not both."],
  [["webhooks", "rotate", "--overlap", "soon"], "soon is not a valid duration."],
  [["keys", "create", "ci", "--expires", "soon"], "soon is not a valid duration."],
  [["listen", "--forward", "there"], "--forward must be an absolute http(s) URL."],
  [["deployments", "wait", id, "--timeout", "25h"], "--timeout must be 1s to 24h"],
  [["deliveries", "list", "--until", "tomorrow"], "--until must be an ISO 8601 time"],
])("%j is rejected before a request is made", async (args, message) => {
  process.env.SVC_API_KEY = "a.b.c";
  const error = await createProgram()
    .parseAsync(args, { from: "user" })
    .catch((error: unknown) => error);
  delete process.env.SVC_API_KEY;
  expect(error).toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
});

test.each<[string[], string]>([
  [["webhooks", "update", "--settle", "61s"], "Pass 0s to 60s."],
  [["webhooks", "update", "--delivery", "newest"], "Allowed choices are every, latest."],
  [["webhooks", "create", "https://example.com/", "--format", "mattermost"], "Allowed choices are standard, slack"],
  [["webhooks", "create", "https://example.com/", "--events", "Deploy.*"], "Valid: deploy.started"],
  [["webhooks", "create", "https://example.com/", "--events", "deploy.*.failed"], "Valid: deploy.started"],
  [["trigger", "deploy.*"], "Valid: deploy.started"],
  [["deliveries", "list", "--event", "*"], "Valid: deploy.started"],
])("%j is refused with what is valid", async (args, message) => {
  expect(await svcHere(args)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
});

test("the paragraphs of each help fit a terminal of 80 columns, and examples stay on a line", () => {
  const { columns } = process.stdout;
  const lines: string[] = [];
  const write = jest.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(...String(text).split("\n"));
    return true;
  });
  Object.defineProperty(process.stdout, "columns", { value: 80, configurable: true, writable: true });
  try {
    for (const [, command] of allCommands(createProgram())) command.outputHelp();
  } finally {
    Object.defineProperty(process.stdout, "columns", { value: columns, configurable: true, writable: true });
    write.mockRestore();
  }
  expect(lines.filter((line) => /^\S/.test(line) && line.length > 80)).toEqual([]);
  expect(lines).toContain(
    "  $ svc apply -f webhooks.yml --dry-run --exit-code   # a check in CI: does the project differ from the file?",
  );
});

test("the help marks exactly the required options", () => {
  const marked = allCommands(createProgram()).flatMap(([path, command]) =>
    [...command.helpInformation().matchAll(/(--[a-z-]+)[^-\n]*?\s+required; /g)].map(([, name]) => `${path} ${name}`),
  );
  expect(marked).toEqual([
    "service-accounts create --role",
    "apply --file",
    "deliveries recover --since",
    "workflows trust --permission",
  ]);
});
