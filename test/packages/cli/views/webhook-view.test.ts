import { widthOf } from "../../../../packages/cli/src/views/table.ts";
import {
  bars,
  certificationCell,
  mergeBuckets,
  stateCell,
  stateDetail,
  statsPage,
  webhookPage,
} from "../../../../packages/cli/src/views/webhook-view.ts";
import type { Webhook, WebhookHealth, WebhookStats } from "../../../../packages/client/src/client.ts";

const now = new Date("2026-11-21T12:00:00.000Z");
const at = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
const healthy: WebhookHealth = {
  state: "healthy",
  since: null,
  last_success_at: null,
  last_error: null,
  next_probe_at: null,
};
const webhookWith = (health: Partial<WebhookHealth>, changes: Partial<Webhook> = {}): Webhook => ({
  id: "w-1",
  project_id: "p-1",
  url: "https://example.com/",
  events: ["deploy.failed"],
  created_at: at(-900),
  enabled: true,
  disabled_reason: null,
  health: { ...healthy, ...health },
  disabled_at: null,
  created_by: null,
  updated_by: null,
  secret_rotated_at: null,
  ...changes,
});
const gone = { enabled: false, disabled_reason: "gone" } as const;

const inProject = "--project p-1";
const held = `Deliveries are held, and not sent by themselves later. Enable the webhook and send them: svc webhooks update w-1 --enable ${inProject} && svc deliveries recover --since 24h --webhook w-1 ${inProject}`;
const ofOperator = "Deliveries are held. Contact the operator of the platform.";

test.each<[Webhook, string, string, string | undefined]>([
  [
    webhookWith({ state: "new" }),
    "new",
    "dim",
    `No delivery has succeeded yet. Send one: svc webhooks test w-1 ${inProject}`,
  ],
  [webhookWith({}), "healthy", "green", undefined],
  [
    webhookWith({ state: "slow", since: at(-60) }),
    "slow, since 1 min ago",
    "yellow",
    "The receiver responds slowly: deliveries may wait for each other.",
  ],
  [
    webhookWith({ state: "failing", since: at(-9) }),
    "failing, since 9 s ago",
    "red",
    "Deliveries are retried. From 30 seconds of failures on, the oldest that waits is sent as a probe.",
  ],
  [
    webhookWith({ state: "probing", since: at(-99), next_probe_at: at(40) }),
    "failing, probe in 40 s, since 1 min ago",
    "red",
    "Deliveries wait. The oldest is sent as a probe, and after a success all others, oldest first.",
  ],
  [
    webhookWith({}, { mode: "shadow" }),
    "shadow",
    "magenta",
    `Deliveries are signed and logged, and not sent. Switch it: svc webhooks update w-1 --mode live ${inProject}`,
  ],
  [
    webhookWith({ state: "disabled", since: at(-9) }, { ...gone, mode: "shadow" }),
    "disabled, gone, since 9 s ago",
    "red",
    held,
  ],
  [webhookWith({ state: "disabled", since: at(-9) }, gone), "disabled, gone, since 9 s ago", "red", held],
  [webhookWith({ state: "disabled" }, { suspended_at: at(-9) }), "suspended, project suspended", "red", ofOperator],
  [
    webhookWith({ state: "disabled" }, { ...gone, suspended_at: at(-9) }),
    "disabled, gone, project suspended",
    "red",
    ofOperator,
  ],
])("the state of a webhook %# is shown in words, and on its page what it means", (webhook, text, style, meaning) => {
  const [state, ...detail] = text.split(", ");
  expect(stateCell(webhook)).toEqual({ text: state, style });
  expect(stateDetail(webhook, now)).toBe(detail.join(", "));
  // The line below that of the state has no name.
  expect(/^state .*\n(?: +(.*)$)?/m.exec(webhookPage(webhook, now))?.[1]).toBe(meaning);
});

test.each([
  [true, "passed 1 min ago", "green"],
  [false, "not passed 1 min ago", "yellow"],
] as const)("a certification that passed: %s, is shown with its age, and none without one", (passed, text, style) => {
  const last_certification = { id: "c-1", finished_at: at(-60), passed };
  const certified = webhookWith({}, { last_certification });
  expect(certificationCell(certified, now)).toEqual({ text, style });
  expect(webhookPage(certified, now)).toContain(`certified     ${text}`);
  expect(certificationCell(webhookWith({}))).toEqual({ text: "" });
  expect(webhookPage(webhookWith({}), now)).not.toContain("certified");
});

test.each<[(number | null)[], string]>([
  [[], ""],
  [[0, 0], "··"],
  [[1, 2, 4, 8], "▁▂▄█"],
  [[null, 0, 1, 1000], " ·▁█"],
])("bars of %j are %j", (values, expected) => {
  expect(bars(values)).toBe(expected);
});

const buckets = Array.from({ length: 48 }, (_, index) => ({
  start: at(1800 * (index - 47)),
  attempts: index === 10 ? 0 : 4,
  succeeded: index === 10 ? 0 : 3,
  p50_ms: index === 10 ? null : 20,
  p95_ms: index === 10 ? null : 20 + index,
}));
const stats: WebhookStats = {
  window: "24h",
  since: at(-86_000),
  until: at(0),
  bucket_seconds: 1800,
  deliveries_read: 188,
  complete: true,
  covered_since: at(-86_000),
  attempts: 188,
  succeeded: 141,
  success_rate: 141 / 188,
  response_ms: { p50: 20.4, p95: 61.2 },
  by_event: [{ event: "deploy.failed", attempts: 188, succeeded: 141 }],
  by_error: [{ error_code: "timeout", attempts: 47 }],
  buckets,
};

test("buckets that are merged keep the sum of their attempts and the slowest p95", () => {
  const merged = mergeBuckets(buckets, 30);
  expect(merged).toHaveLength(24);
  expect(merged[5]).toEqual({ attempts: 4, succeeded: 3, p95_ms: 31 });
  expect(mergeBuckets(buckets, 48)).toEqual(buckets);
});

test.each([30, 40, 60, 80, 200])("statistics fit a terminal of %i columns", (width) => {
  const lines = statsPage(stats, width, now).split("\n");
  const charts = lines.filter((line) => /^(succeeded|failed|p95) +[▁-█· ]+$/.test(line));
  expect(charts).toHaveLength(3);
  for (const chart of charts) expect(widthOf(chart)).toBeLessThanOrEqual(width);
});

test("a share of successes below 1 is never shown as 100 %", () => {
  const almost = { ...stats, attempts: 100_000, succeeded: 99_999, success_rate: 0.99999 };
  expect(statsPage(almost, 80, now)).toContain("(99.9 %)");
});
