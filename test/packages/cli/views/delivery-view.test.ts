import {
  deliveryLine,
  deliveryPage,
  deliveryTable,
  hintsOf,
  nextText,
} from "../../../../packages/cli/src/views/delivery-view.ts";
import type { Attempt, DeliveryWithAttempts } from "../../../../packages/client/src/client.ts";

const attempt: Attempt = {
  number: 1,
  at: "2026-11-21T12:00:01.000Z",
  duration_ms: 15,
  request_count: 1,
  status_code: 200,
  error_code: null,
  response_excerpt: null,
  response_headers: null,
  trigger: "schedule",
  hint: null,
};
const deliveryWith = (attempts: Attempt[]): DeliveryWithAttempts => ({
  id: "d-1",
  webhook_id: "w-1",
  event: "deploy.started",
  deployment_id: "x",
  status: "succeeded",
  test: false,
  created_at: "2026-11-21T12:00:00.000Z",
  waiting_for: null,
  next_attempt_at: null,
  attempt_count: attempts.length,
  last_attempt: attempts.at(-1) ?? null,
  payload: {
    event: "deploy.started",
    project_id: "p-1",
    deployment_id: "x",
    timestamp: "2026-11-21T12:00:00.000Z",
    data: {},
  },
  attempts,
});

test.each([
  [1, "200 in 15 ms"],
  [2, "200 in 15 ms (2 requests)"],
])("an attempt with a request count of %i is shown as %s, in a line and on a page", (request_count, shown) => {
  const last = { ...attempt, request_count };
  const delivery = deliveryWith([last]);
  const parts = [deliveryLine(delivery, last), deliveryPage(delivery, "p-1")].map((text) => text.split(/ {2,}|\n/));
  for (const part of parts) expect(part).toContain(shown);
});

test.each(["response_excerpt", "hint"] as const)("%s can add neither a line nor a style to the page", (field) => {
  // print keeps line breaks and the styles of the program, so they must be escaped here.
  const page = deliveryPage(deliveryWith([{ ...attempt, [field]: "no\n\u001b[32m✔ 2  forged" }]), "p-1");
  expect(page).toContain("no\\u000a\\u001b[32m✔ 2  forged");
});

test("a line shows the start of a response, escaped and shortened, and a page shows all of it", () => {
  const failed = { ...attempt, status_code: 500, error_code: "http_status" as const, hint: "Look at its log." };
  const line = (response_excerpt: string) => deliveryLine(deliveryWith([failed]), { ...failed, response_excerpt });
  expect(line("\u001b[2J down").split("\n").slice(1)).toEqual([
    "           → Look at its log.",
    "           response: \\u001b[2J down",
  ]);
  expect(line("x".repeat(200))).toContain(`response: ${"x".repeat(200)}`);
  expect(line("x".repeat(201)).split("\n")[2]).toBe(`           response: ${"x".repeat(199)}…`);
  const long = { ...failed, response_excerpt: "x".repeat(1000) };
  expect(deliveryPage(deliveryWith([long]), "p-1")).toContain(`response: ${"x".repeat(1000)}\n`);
});

describe("what a delivery waits for", () => {
  const now = new Date("2026-11-21T12:00:00.000Z");
  const waiting = (changes: Partial<DeliveryWithAttempts>): DeliveryWithAttempts => ({
    ...deliveryWith([]),
    status: "pending",
    next_attempt_at: "2026-11-21T12:00:40.000Z",
    ...changes,
  });

  test.each<[Partial<DeliveryWithAttempts>, string | undefined]>([
    [{ status: "succeeded", next_attempt_at: null }, undefined],
    [{ waiting_for: null }, "in 40 s"],
    [{ waiting_for: "schedule" }, "in 40 s"],
    [{ waiting_for: "schedule", next_attempt_at: "2026-11-21T11:59:59.000Z" }, "due"],
    [{ waiting_for: "recovery" }, "probe 40 s"],
    [{ waiting_for: "recovery", next_attempt_at: now.toISOString() }, "probe due"],
    [{ waiting_for: "busy" }, "due"],
    [{ waiting_for: "suspended" }, "held"],
    [{ waiting_for: "suspended", status: "held", next_attempt_at: null }, "on recover"],
  ])("%j is shown as %s", (changes, expected) => {
    expect(nextText(waiting(changes), now)).toBe(expected);
  });

  test("is not in the line of a new delivery, whose first attempt is about to be made", () => {
    expect(deliveryLine(waiting({ waiting_for: null }), undefined, undefined, now)).toMatch(/attempt 0$/);
  });
});

describe("a delivery that failed and waits", () => {
  const hint = "The receiver returned 401: verify with this webhook's secret.";
  const rejected = { ...attempt, status_code: 401, error_code: "http_status" as const, duration_ms: 12, hint };
  const at = new Date(Date.now() + 4.2 * 60_000).toISOString();
  const id = "01a204e0-10a6-702c-948e-270019c17417";
  const failing: DeliveryWithAttempts = {
    ...deliveryWith([rejected]),
    ...{ id, status: "pending", waiting_for: "schedule", next_attempt_at: at },
  };
  const untried: DeliveryWithAttempts = { ...deliveryWith([]), status: "pending", next_attempt_at: at };
  const webhooks = new Map([["w-1", "Chat of the shop"]]);
  const columns = (width: number | undefined) => {
    Object.defineProperty(process.stdout, "columns", { value: width, configurable: true, writable: true });
  };
  const before = process.stdout.columns;
  afterEach(() => columns(before));

  test("is failing in red in a line and on the page", () => {
    process.env.FORCE_COLOR = "1";
    const red = "\u001b[31mfailing";
    try {
      expect(deliveryLine(failing)).toContain(red);
      expect(deliveryPage(failing, "p-1")).toContain(red);
      expect(deliveryTable([failing], webhooks)).toContain(red);
    } finally {
      delete process.env.FORCE_COLOR;
    }
  });

  test("has its short id, what happened and what is next on a terminal of 80 columns", () => {
    columns(80);
    const refused = { ...failing, last_attempt: { ...rejected, error_code: "connection_refused" as const } };
    const [head, row] = deliveryTable([refused], new Map([["w-1", "Slack: failed deployments"]])).split("\n");
    expect(head?.split(/ +/)).toEqual(["ID", "STATUS", "EVENT", "WEBHOOK", "LAST", "NEXT"]);
    expect(row?.split(/ {2,}/)).toEqual([
      ...["270019c17417", "failing", "deploy.started", "Slack: failed…", "connection_re…", "in 4 min"],
    ]);
    columns(undefined);
    expect(deliveryTable([failing], webhooks)).toContain(id);
  });

  test("has its hint below a list once, up to three, with the newest that has it, and a success has none", () => {
    const line = (text: string) => `→ ${text}`;
    const list = [failing, failing, deliveryWith([attempt]), untried];
    expect(hintsOf(list, webhooks)).toEqual([line(`270019c17417 to Chat of the shop and 1 more: ${hint}`)]);
    const others = [1, 2, 3].map((number) => deliveryWith([{ ...rejected, hint: `${number}` }]));
    const failed = others.map((each) => ({ ...each, status: "failed" as const }));
    expect(hintsOf([failing, ...failed], new Map())).toEqual([
      line(`270019c17417 to w-1: ${hint}`),
      ...["d-1 to w-1: 1", "d-1 to w-1: 2"].map(line),
    ]);
    expect(hintsOf([{ ...failing, status: "superseded" }], webhooks)).toEqual([]);
  });

  test("has the headers of its response on the page, escaped", () => {
    const page = deliveryPage(deliveryWith([{ ...rejected, response_headers: { server: "a\u001b[2J" } }]), "p-1");
    expect(page).toContain("server: a\\u001b[2J");
    expect(page).toMatch(/^event +deploy.started$/m);
    expect(page).toMatch(/^✘ 1 /m);
    const tested = { ...deliveryWith([attempt]), test: true };
    expect(deliveryPage(tested, "p-1").split("\n")).toContainEqual(expect.stringMatching(/^✔ 1 /));
    for (const text of [deliveryPage(tested, "p-1"), deliveryTable([tested], webhooks)])
      expect(text).toContain("deploy.started (test)");
  });
});
