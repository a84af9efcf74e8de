import type { Command } from "commander";
import { eventNames } from "../../../functions/deployments/deployment-event.ts";
import { webhookEventNames } from "../../../functions/deployments/webhook-event.ts";
import { permissions } from "../../../functions/manifest/endpoints.ts";
import { readSince } from "../../../packages/cli/src/deliveries.ts";
import { readDuration } from "../../../packages/cli/src/deployments.ts";
import { createProgram } from "../../../packages/cli/src/program.ts";
import { collectEvents } from "../../../packages/cli/src/webhooks.ts";
import type { WebhookEventName } from "../../../packages/client/src/client.ts";

/* Default values of options, and the values that they accept. */

const allCommands = (command: Command, path = ""): [string, Command][] => [
  [path, command],
  ...command.commands.flatMap((child) => allCommands(child, `${path} ${child.name()}`.trim())),
];

test("options have these defaults and choices", () => {
  const events = [...webhookEventNames];
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
    ["webhooks create --events", undefined, events],
    ["webhooks update --events", undefined, events],
    ["webhooks rotate --overlap", "86400", undefined],
    ["webhooks test --event", "deploy.succeeded", events],
    ["deliveries list --status", undefined, ["pending", "succeeded", "failed", "held", "cancelled"]],
    ["deliveries list --limit", "20", undefined],
    ["deliveries recover --status", undefined, ["failed", "held"]],
    ["deliveries tail --last", "5", undefined],
    ["deployments wait --timeout", "20m", undefined],
    ["deployments watch --event", undefined, [...eventNames]],
    ["deployments watch --last", "5", undefined],
    ["workflows trust --issuer", "github", undefined],
    [
      "workflows trust --permission",
      undefined,
      ["projects:read", "webhooks:read", "webhooks:write", "deliveries:read", "deliveries:write", "events:read"],
    ],
    ["audit --limit", "20", undefined],
    ["listen --port", "4000", undefined],
    ["listen --status", "200", undefined],
  ]);
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

test.each(["yesterday", "5", "-5min", "1.5h", "2026-11-20", "2026-11-20T08:00:00", "2026-13-20T08:00:00Z"])(
  "readSince rejects %s with exit code 2",
  (text) => {
    expect(() => readSince(text, now)).toThrow(expect.objectContaining({ exitCode: 2 }));
  },
);

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
])("collectEvents of %j is %j", (values, events) => {
  expect(values.reduce<WebhookEventName[] | undefined>((names, text) => collectEvents(text, names), undefined)).toEqual(
    events,
  );
});

test.each([
  [
    "deploy.paused",
    "Valid events: deploy.started, deploy.succeeded, deploy.failed, webhook.failing, webhook.disabled.",
  ],
  [
    "deploy.failed,",
    "Valid events: deploy.started, deploy.succeeded, deploy.failed, webhook.failing, webhook.disabled.",
  ],
  ["https://example.com/", "Pass the URL before --events."],
])("collectEvents rejects %s", (text, message) => {
  expect(() => collectEvents(text)).toThrow(message);
});

test.each([
  ["1s", 1],
  ["90s", 90],
  ["20m", 1_200],
  ["20min", 1_200],
  ["24h", 86_400],
  ["25h", undefined],
  ["0m", undefined],
  ["20", undefined],
  ["-1m", undefined],
  ["1.5h", undefined],
  ["soon", undefined],
])("readDuration converts %s to %s seconds", (text, seconds) => {
  expect(readDuration(text)).toBe(seconds);
});
