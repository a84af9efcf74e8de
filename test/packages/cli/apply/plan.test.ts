import { jest } from "@jest/globals";
import { applyPlan } from "../../../../packages/cli/src/apply/apply-plan.ts";
import { planChanges, requireCertified, withMaskedUrls } from "../../../../packages/cli/src/apply/plan.ts";
import { planText, toChangeRecord } from "../../../../packages/cli/src/apply/plan-view.ts";
import type { DeclaredWebhook } from "../../../../packages/cli/src/apply/webhooks-file.ts";
import type { Client, WebhookInList } from "../../../../packages/client/src/client.ts";

/* What `svc apply` changes, and how it shows it. */

const webhook = (id: string, url: string, changes: Partial<WebhookInList> = {}): WebhookInList => ({
  id,
  project_id: "p-1",
  url,
  events: ["deploy.failed"],
  created_at: "2026-11-21T12:00:00.000Z",
  enabled: true,
  disabled_reason: null,
  health: { state: "healthy", since: null, last_success_at: null, last_error: null, next_probe_at: null },
  ...changes,
});
const declared = (url: string, changes: Partial<DeclaredWebhook> = {}): DeclaredWebhook => ({
  url,
  events: ["deploy.failed"],
  ...changes,
});
const a = "https://a.example.com/";
const b = "https://b.example.com/hook";

/** Calls a function in place of writing. */
const onWrite = (stream: NodeJS.WriteStream, print: (text: string) => void) =>
  jest.spyOn(stream, "write").mockImplementation((text, ...rest) => {
    print(String(text));
    const written = rest.at(-1);
    if (typeof written === "function") written();
    return true;
  });

/** The actions of a plan: `create https://…`. */
const actions = (file: DeclaredWebhook[], existing: WebhookInList[], prune = false) =>
  planChanges(file, existing, { prune }).map((change) => {
    const { action, url } = toChangeRecord(change);
    return `${action} ${url}`;
  });

test("a declared URL without a webhook is created, a webhook with the declared values is unchanged", () => {
  expect(actions([declared(a), declared(b)], [webhook("w-1", a)])).toEqual([`unchanged ${a}`, `create ${b}`]);
});

test("nothing is planned with a credential that sees masked URLs", () => {
  const existing = [webhook("w-1", a), webhook("w-2", "https://b.example.com/***")];
  for (const file of [[declared(b)], [declared("https://b.example.com/***")], []]) {
    expect(() => actions(file, existing, true)).toThrow("The URLs of the webhooks are masked for this credential");
  }
});

test("a webhook that the file does not have is kept, and deleted with prune", () => {
  const existing = [webhook("w-1", a), webhook("w-2", b)];
  expect(actions([declared(a)], existing)).toEqual([`unchanged ${a}`, `keep ${b}`]);
  expect(actions([declared(a)], existing, true)).toEqual([`unchanged ${a}`, `delete ${b}`]);
  expect(actions([], existing, true)).toEqual([`delete ${a}`, `delete ${b}`]);
});

test.each([
  ["https://a.example.com", a],
  ["HTTPS://A.example.com:443/x/../", a],
  ["https://a.example.com./", a],
  [a, "https://a.example.com"],
])("%s matches the webhook with the URL %s", (file, existing) => {
  expect(actions([declared(file)], [webhook("w-1", existing)])).toEqual([`unchanged ${existing}`]);
});

test.each([
  "https://a.example.com/?x=1",
  "https://a.example.com/hook",
  "http://a.example.com/",
  "https://a.example.com:8443/",
])("%s does not match another URL", (url) => {
  expect(actions([declared(url)], [webhook("w-1", a)])).toEqual([`create ${url}`, `keep ${a}`]);
});

test.each<[string, Partial<DeclaredWebhook>, Partial<WebhookInList>, object | undefined]>([
  ["other events", { events: ["deploy.started"] }, {}, { events: { from: ["deploy.failed"], to: ["deploy.started"] } }],
  [
    "the same events in another order, and repeated",
    { events: ["deploy.failed", "deploy.started", "deploy.failed"] },
    { events: ["deploy.started", "deploy.failed"] },
    undefined,
  ],
  [
    "fewer events",
    {},
    { events: ["deploy.failed", "deploy.started"] },
    { events: { from: ["deploy.failed", "deploy.started"], to: ["deploy.failed"] } },
  ],
  ["a filter", { filter: { branch: ["main"] } }, {}, { filter: { from: null, to: { branch: ["main"] } } }],
  [
    "another filter",
    { filter: { branch: ["main"] } },
    { filter: { branch: ["main", "next"] } },
    { filter: { from: { branch: ["main", "next"] }, to: { branch: ["main"] } } },
  ],
  [
    "the same filter in another order",
    { filter: { a: ["1", "2"], b: ["3"] } },
    { filter: { b: ["3"], a: ["2", "1"] } },
    undefined,
  ],
  ["no filter, for a webhook with one", {}, { filter: { branch: ["main"] } }, undefined],
  [
    "the filter null, for a webhook with one",
    { filter: null },
    { filter: { branch: ["main"] } },
    { filter: { from: { branch: ["main"] }, to: null } },
  ],
  ["the filter null, for a webhook without one", { filter: null }, {}, undefined],
  ["no state, for a disabled webhook", {}, { enabled: false, disabled_reason: "failing" }, undefined],
  ["enabled, for a disabled webhook", { enabled: true }, { enabled: false }, { enabled: { from: false, to: true } }],
  ["disabled, for an enabled webhook", { enabled: false }, {}, { enabled: { from: true, to: false } }],
  ["disabled, for a disabled webhook", { enabled: false }, { enabled: false }, undefined],
])("a declaration with %s changes the right fields", (_, changes, state, expected) => {
  const [change] = planChanges([declared(a, changes)], [webhook("w-1", a, state)], { prune: false });
  expect(change && toChangeRecord(change)).toEqual(
    expected === undefined
      ? { action: "unchanged", id: "w-1", url: a }
      : { action: "update", id: "w-1", url: a, changes: expected },
  );
});

test("several webhooks with a declared URL are an error with their ids, and none if the URL is not declared", () => {
  const twins = [webhook("w-1", a), webhook("w-2", "https://a.example.com")];
  expect(() => planChanges([declared(a)], twins, { prune: true })).toThrow(
    expect.objectContaining({ exitCode: 1, advice: expect.stringMatching(/ {2}w-1\n {2}w-2$/) }),
  );
  expect(actions([declared(b)], twins, true)).toHaveLength(3);
});

test("the record of a webhook to create has its events once, and its state", () => {
  const [change] = planChanges([declared(a, { events: ["deploy.failed", "deploy.failed"] })], [], { prune: false });
  expect(change && toChangeRecord(change)).toEqual({
    action: "create",
    id: null,
    url: a,
    events: ["deploy.failed"],
    enabled: true,
  });
});

test.each<[string, Partial<DeclaredWebhook>, string[]]>([
  ["https://hooks.slack.com/services/T0/B0/x", {}, ["slack"]],
  ["https://hooks.slack.com/services/T0/B0/x", { format: "standard" }, ["standard"]],
  [a, {}, []],
])("a new webhook with the URL %s and %j has the format %j, and an existing one is unchanged", (url, own, formats) => {
  const created = planChanges([declared(url, own)], [], { prune: false });
  expect(created.flatMap((change) => (change.action === "create" ? (change.declared.format ?? []) : []))).toEqual(
    formats,
  );
  expect(actions([declared(url, own)], [webhook("w-1", url)])).toEqual([`unchanged ${url}`]);
});

test("the text of a plan reads like a diff, and ends with the counts", () => {
  const file = [
    declared("https://new.example.com/", { enabled: false }),
    declared(a, { events: ["deploy.started"], enabled: true }),
    declared(b),
  ];
  const existing = [
    webhook("w-1", a, { enabled: false }),
    webhook("w-2", b),
    webhook("w-3", "https://old.example.com/\u202e"),
  ];
  const text = (prune: boolean) => planText(planChanges(file, existing, { prune }), process.stdout);
  expect(text(true)).toBe(`+ https://new.example.com/
+   events: deploy.failed
+   enabled: false
~ https://a.example.com/  w-1
-   events: deploy.failed
+   events: deploy.started
-   enabled: false
+   enabled: true
  https://b.example.com/hook  w-2
- https://old.example.com/\\u202e  w-3, with its delivery log
1 to create, 1 to update, 1 to delete, 1 unchanged.`);
  expect(text(false)).toContain("  https://old.example.com/\\u202e  w-3  not in the file; kept\n");
  expect(text(false)).toMatch(/\n1 to create, 1 to update, 1 unchanged, 1 not in the file \(--prune deletes them\)\.$/);
  expect(planText([], process.stdout)).toBe("No webhooks.");
});

test("masked URLs are those that the file does not have, in the text and in the records, and what is deleted is the same", () => {
  const existing = [webhook("w-1", a), webhook("w-2", "https://chat.example.com/services/token")];
  for (const prune of [true, false]) {
    const plan = withMaskedUrls(planChanges([declared(a), declared(b)], existing, { prune }));
    const shown = [planText(plan, process.stdout), JSON.stringify(plan.map(toChangeRecord))];
    for (const text of shown) {
      expect(text).not.toContain("token");
      for (const part of ["https://chat.example.com/***", "w-2", a, b]) expect(text).toContain(part);
    }
  }
});

test("webhooks are created and changed before others are deleted, so that none is missing if the command is cut off", async () => {
  const output = onWrite(process.stdout, () => {});
  const calls: string[] = [];
  const record = (name: string) => async () => {
    calls.push(name);
    return { id: "w-9", secret: "whsec_", url: b };
  };
  const api = {
    createWebhook: record("create"),
    updateWebhook: record("update"),
    deleteWebhook: record("delete"),
  } as unknown as Client;
  const existing = [webhook("w-1", "https://old.example.com/"), webhook("w-2", a)];
  const file = [declared(b), declared(a, { events: ["deploy.started"] })];
  const plan = planChanges(file, existing, { prune: true }).reverse();
  await applyPlan(api, "p-1", plan, { json: true, yes: true });
  output.mockRestore();
  expect(calls).toEqual(["create", "update", "delete"]);
});

test("the secret of a webhook that is created disabled is printed although the disabling fails", async () => {
  let printed = "";
  const spies = (["stdout", "stderr"] as const).map((name) =>
    onWrite(process[name], (text) => {
      printed += text;
    }),
  );
  const api = {
    createWebhook: async () => ({ id: "w-9", secret: "whsec_1", url: b }),
    updateWebhook: () => Promise.reject(new Error("Busy.")),
  } as unknown as Client;
  const plan = planChanges([declared(b, { enabled: false })], [], { prune: false });
  for (const json of [true, false]) {
    printed = "";
    await expect(applyPlan(api, "p-1", plan, { json })).rejects.toThrow("Busy.");
    expect(printed).toContain("whsec_1");
  }
  for (const spy of spies) spy.mockRestore();
});

test("a filter is in the text of the plan, in the record of a creation and in its request, and removed like a name", async () => {
  const filter = { environment: ["production"], branch: ["main", "release/*"] };
  const file = [declared(b, { filter, name: "Ops" }), declared(a, { filter: null, name: null })];
  const plan = planChanges(file, [webhook("w-1", a, { filter, name: "Chat" })], { prune: false });
  const text = planText(plan, process.stdout);
  const shown = "branch=main, branch=release/*, environment=production";
  for (const line of [`+   filter: ${shown}`, `-   filter: ${shown}`, "+   filter: none"]) expect(text).toContain(line);
  expect(plan.map(toChangeRecord)[0]).toMatchObject({ action: "create", filter });
  const output = onWrite(process.stdout, () => {});
  const [createWebhook, updateWebhook] = [jest.fn(async (_: string, _body: object) => ({})), jest.fn(async () => ({}))];
  await applyPlan({ createWebhook, updateWebhook } as unknown as Client, "p-1", plan, { json: true });
  output.mockRestore();
  expect(createWebhook).toHaveBeenCalledWith("p-1", { url: b, name: "Ops", events: ["deploy.failed"], filter });
  expect(updateWebhook).toHaveBeenCalledWith({ projectId: "p-1", webhookId: "w-1" }, { filter: null, name: null });
});

describe("a declared name", () => {
  const named = webhook("w-1", a, { name: "Chat" });
  const changesOf = (file: Partial<DeclaredWebhook>, existing: WebhookInList) =>
    planChanges([declared(a, file)], [existing], { prune: false }).map(toChangeRecord)[0]?.changes;

  test("is set, changed, removed with null, and left as it is when it is absent", () => {
    expect(changesOf({ name: "Chat" }, webhook("w-1", a))).toEqual({ name: { from: null, to: "Chat" } });
    expect(changesOf({ name: "Shop" }, named)).toEqual({ name: { from: "Chat", to: "Shop" } });
    expect(changesOf({ name: null }, named)).toEqual({ name: { from: "Chat", to: null } });
    for (const file of [{}, { name: "Chat" }]) expect(changesOf(file, named)).toBeUndefined();
    expect(changesOf({ name: null }, webhook("w-1", a))).toBeUndefined();
  });

  test("is in the text of the plan", () => {
    const plan = planChanges([declared(a, { name: null }), declared(b, { name: "New" })], [named], { prune: false });
    const text = planText(plan, process.stdout);
    for (const line of ["-   name: Chat", "+   name: none", "+   name: New"]) expect(text).toContain(line);
  });
});

describe("certifications that are required", () => {
  const last_certification = { id: "c-1", finished_at: "2026-11-21T12:00:00.000Z", passed: true };
  const passed = webhook("w-1", a, { last_certification });
  const rejected = { ...passed, last_certification: { ...last_certification, passed: false } };
  const check = (file: DeclaredWebhook[], existing: WebhookInList[]) => () =>
    requireCertified(planChanges(file, existing, { prune: true }), "p-1");

  test.each<[string, DeclaredWebhook[], WebhookInList[]]>([
    ["a receiver that passed", [declared(a, { events: ["deploy.started"] })], [passed]],
    ["a new webhook that is disabled", [declared(a, { enabled: false })], []],
    [
      "a webhook that is or gets disabled",
      [declared(a), declared(b, { enabled: false })],
      [webhook("w-1", a, { enabled: false }), webhook("w-2", b)],
    ],
    ["a webhook in shadow mode", [declared(a)], [webhook("w-1", a, { mode: "shadow" })]],
    ["a webhook that is deleted", [], [webhook("w-1", a)]],
  ])("are not missing of %s", (_, file, existing) => {
    expect(check(file, existing)).not.toThrow();
  });

  test.each<[string, DeclaredWebhook[], WebhookInList[], string]>([
    ["a receiver without one", [declared(a)], [webhook("w-1", a)], "svc webhooks certify w-1 --project p-1"],
    ["a receiver that did not pass", [declared(a)], [rejected], "svc webhooks certify w-1 --project p-1"],
    [
      "a webhook that gets enabled",
      [declared(a, { enabled: true })],
      [webhook("w-1", a, { enabled: false })],
      "svc webhooks certify w-1 --project p-1",
    ],
    ["a new webhook", [declared(a)], [], `Declare ${a} with enabled: false first`],
  ])("are missing of %s, and the error says what to do", (_, file, existing, advice) => {
    const error = { message: expect.stringContaining("not certified"), advice: expect.stringContaining(advice) };
    expect(check(file, existing)).toThrow(expect.objectContaining(error));
  });
});
