import { resolveObjectURL } from "node:buffer";
import { shortId } from "../../../packages/console/src/data/short.ts";
import { clockTime } from "../../../packages/console/src/data/time.ts";
import { ago } from "../../support/api-samples.ts";
import { browser, click, count, elapse, enter, open, shows, textOf, until } from "../../support/browser-page.ts";
import {
  at,
  attempt,
  deliveryOf,
  failure,
  hash,
  json,
  now,
  projectId,
  render,
  respond,
  sentTo,
  source,
  start,
  useConsole,
  webhook,
  webhookId,
} from "../../support/console-app.ts";

/* What the console's screens of webhooks, deliveries, events and keys show, also page by page. */

useConsole();

/** The names of the buttons that cannot be clicked. */
const disabled = () => browser.page.body.all().flatMap((node) => (node.disabled ? textOf(node) : []));

test("the statistics of a list of webhooks are loaded four at a time, without one that fails, and for no other view", async () => {
  const ids = Array.from({ length: 6 }, (_, index) => `w-${index}`);
  respond("GET webhooks", () => json(ids.map((id) => ({ ...webhook, id }))));
  const isLoaded = Promise.withResolvers<void>();
  respond("GET stats", async ({ path }) => {
    await isLoaded.promise;
    if (path.includes("w-2")) return failure(500, "internal_error", "No.");
    return json({ attempts: 1, succeeded: 0, window: "24h", buckets: [] });
  });
  await start(`#/projects/${projectId}/deliveries`);
  await shows("No deliveries yet");
  expect(sentTo("GET stats")).toEqual([]);
  await open(`#/projects/${projectId}`);
  await shows("Last 24 h");
  expect(sentTo("GET stats")).toHaveLength(4);
  isLoaded.resolve();
  await shows("1 of 1 failed");
  expect([sentTo("GET stats").length, textOf().match(/1 of 1 failed/g)?.length]).toEqual([6, 5]);
});

test("the code to verify is loaded again after a failure", async () => {
  respond("GET receivers.json", () => Promise.reject(new TypeError("Failed to fetch")));
  await start(`${hash}/verify`);
  await shows("The files could not be loaded.");
  respond("GET receivers.json", () => new Response('{"node/verify-webhook.mjs":"code"}'));
  await open(hash);
  await open(`${hash}/verify`);
  await shows("verify-webhook.mjs verifies the signature");
});

describe("deliveries", () => {
  test("an attempt that is opened says that the service keeps the responses of the newest three", async () => {
    const { id } = deliveryOf(1);
    const attempts = [1, 2, 3, 4].map((number) => ({ ...attempt, number }));
    respond(`GET ${id}`, () => json({ ...deliveryOf(1), attempt_count: 4, payload: {}, attempts }));
    await start(`${hash}/deliveries/${id}`);
    await shows("Attempt 4");
    for (const details of browser.page.body.all().filter((node) => node.getAttribute("class") === "as-sent")) {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    }
    await shows("newest three");
    expect(textOf()).not.toContain("No attempts yet");
    expect(textOf().match(/Body (empty|not kept)/g)).toEqual(["Body not kept", ...Array(3).fill("Body empty")]);
  });

  test("are reloaded in full pages while none of those that were searched match", async () => {
    const link = '<https://api.test/v1/next?cursor=c>; rel="next"';
    respond("GET deliveries", () => json([], { Link: link }));
    await start(`${hash}?status=failed`);
    await shows("None found so far");
    await click("Load more");
    await elapse(5_000);
    expect(sentTo("GET deliveries").at(-1)?.query).toEqual({ status: "failed", limit: "20" });
  });

  test("are sent again oldest first, after a 429 later, and one that is rejected is listed", async () => {
    const created = (number: number) => ago(600 - number * 60);
    respond("GET deliveries", () =>
      json([4, 3, 2, 1].map((number) => ({ ...deliveryOf(number), created_at: created(number) }))),
    );
    const responses = [
      failure(429, "rate_limited", "Wait.", { "Retry-After": "1" }),
      failure(404, "not_found", "There is no such delivery."),
      failure(409, "too_many_attempts", "It has 50 attempts."),
    ];
    respond("POST redeliver", () => responses.shift() ?? json({}, {}, 202));
    await start();
    for (const _ of ["all", "none"]) await enter("Select all shown", true);
    for (const number of [4, 3, 4, 2, 1])
      await enter(
        `Select deploy.failed to https://example.com/hook, succeeded, ${clockTime(created(number))} (${shortId(deliveryOf(number).id)})`,
        true,
      );
    await click("Resend 3");
    await shows("3 deliveries are sent again, oldest first");
    // A dialog that sent nothing keeps the selection.
    for (const name of ["Cancel", "Resend 3"]) await click(name);
    expect(sentTo("POST redeliver")).toEqual([]);
    await click("Resend 3");
    await shows("1 of 3 sent again, 2 rejected.");
    expect(textOf()).toContain(`${deliveryOf(1).id} There is no such delivery.`);
    const ids = sentTo("POST redeliver").map(({ path }) => path.split("/").at(-2));
    expect(ids).toEqual([1, 1, 2, 3].map((number) => deliveryOf(number).id));
    await click("Cancel");
    expect(count("dialog")).toBe(0);
    expect(textOf()).not.toContain("selected");
  });
});

test("deliveries that are sent again: a dialog that was closed sends no more, and says how many it sent", async () => {
  const isClosed = Promise.withResolvers<void>();
  respond("GET deliveries", () => json([3, 2, 1].map((number) => deliveryOf(number))));
  respond("POST redeliver", async () => {
    if (sentTo("POST redeliver").length > 1) await isClosed.promise;
    return json({}, {}, 202);
  });
  await start();
  await enter("Select all shown", true);
  for (const name of ["Resend 3", "Resend 3", "Cancel"]) await click(name);
  expect(textOf()).not.toContain("selected");
  await click("Resend…");
  isClosed.resolve();
  await shows("2 deliveries resent.");
  expect([sentTo("POST redeliver").length, textOf()]).toEqual([
    2,
    expect.stringContaining("Resend deliveries of a period"),
  ]);
});

test("deliveries that are sent again: an error of all ends the run, which continues with the others", async () => {
  respond("GET deliveries", () => json([3, 2, 1].map((number) => deliveryOf(number))));
  respond("POST redeliver", () =>
    sentTo("POST redeliver").length === 2
      ? failure(409, "project_suspended", "The project is suspended.")
      : failure(404, "not_found", "There is no such delivery."),
  );
  await start();
  await enter("Select all shown", true);
  for (const name of ["Resend 3", "Resend 3"]) await click(name);
  await shows("The project is suspended.");
  await click("Resend 2");
  await shows("0 of 3 sent again, 3 rejected.");
  const ids = sentTo("POST redeliver").map(({ path }) => path.split("/").at(-2));
  expect(ids).toEqual([1, 2, 2, 3].map((number) => deliveryOf(number).id));
  expect(disabled()).toEqual(["Resend 0"]);
  await click("Cancel");
  expect(textOf()).toContain("Resend 3");
});

test.each([
  ["a test", "", "succeeded: 200", ["Send test", "Send test"]],
  ["a delivery that is resent", `/deliveries/${deliveryOf(1).id}`, "failed: timeout", ["Resend"]],
] as const)("the message about %s ends with its outcome, once", async (_, address, outcome, clicks) => {
  const delivery = { ...deliveryOf(1, "pending"), payload: {}, attempts: [] as object[] };
  respond("POST test", () => json(delivery, {}, 202));
  respond(`GET ${delivery.id}`, () => json(delivery));
  respond("POST redeliver", () => json(delivery, {}, 202));
  await start(`${hash}${address}`);
  for (const name of clicks) await click(name);
  await open(`${hash}/deliveries/${delivery.id}`);
  await shows("No attempts yet");
  const isFailed = outcome !== "succeeded: 200";
  delivery.attempts = [isFailed ? { ...attempt, status_code: null, error_code: "timeout" } : attempt];
  await shows(`deploy.failed ${outcome}.`);
  await elapse(10_000);
  expect(textOf()).not.toContain(`deploy.failed ${outcome}.`);
});

test("a list of projects names the health of each: what needs somebody first", async () => {
  const lists: Record<string, object[]> = {
    failing: [webhook, { ...webhook, health: { ...webhook.health, state: "probing" } }],
    disabled: [{ ...webhook, enabled: false, disabled_reason: "gone" }],
    healthy: [webhook, { ...webhook, enabled: false, disabled_reason: "manual" }],
    empty: [],
  };
  const projects = Object.keys(lists).map((id) => ({ id, name: id, role: "admin", created_at: at }));
  respond("GET v1/projects", () => json(projects));
  respond("GET webhooks", ({ path }) => json(lists[path.split("/").at(-2) ?? ""]));
  await start("#/projects");
  await shows("failing 1 failing admin");
  for (const text of ["disabled 1 disabled", "healthy healthy", "empty no webhooks"]) expect(textOf()).toContain(text);
});

test("an audit is filtered, searched and exported, the export from all its pages", async () => {
  const entryOf = (action: string, user_id: string, id: string) => {
    const actor = { type: "jwt", user_id };
    return { id, at, action, actor, resource_id: "r-1", details: { name: id } };
  };
  const first = [entryOf("webhook.created", "ann", "one"), entryOf("member.removed", "ann", "two")];
  const second = [entryOf("webhook.deleted", "bob", "three"), entryOf("webhook.deleted", "ann", "four")];
  const link = '<https://api.test/v1/next?cursor=0193a000-0000-7000-8000-00000000d301>; rel="next"';
  respond("GET audit-events", ({ query }) => (query.cursor ? json(second) : json(first, { Link: link })));
  await start("#/audit");
  await shows("removed the user");
  await enter("About", "webhook");
  expect(textOf()).not.toContain("removed the user");
  const field = browser.page.body.all().find((node) => node.getAttribute("type") === "search");
  Object.assign(field ?? {}, { value: " ANN " });
  field?.dispatchEvent(new Event("input"));
  await click("Export all that match");
  await shows("Save audit.ndjson");
  const file = browser.page.body.all().find((node) => node.getAttribute("download") !== undefined);
  const lines = await resolveObjectURL(file?.getAttribute("href") ?? "")?.text();
  expect(
    lines
      ?.trim()
      .split("\n")
      .map((line) => JSON.parse(line).id),
  ).toEqual(["one", "four"]);
  Object.assign(field ?? {}, { value: "nobody" });
  field?.dispatchEvent(new Event("input"));
  await shows("None of the entries shown matches");
});

describe("a recovery", () => {
  beforeEach(() => {
    const statuses = ["failed", "failed", "held", "succeeded"];
    // Their ids contain the time of their creation.
    const id = (index: number) =>
      deliveryOf(0)
        .id.replace(/^[\w-]{13}/, now.toString(16).padStart(12, "0").replace(/^.{8}/, "$&-"))
        .replace("d301", `000${index}`);
    respond("GET deliveries", ({ query }) =>
      json(query.limit === "100" ? statuses.map((status, index) => ({ ...deliveryOf(0, status), id: id(index) })) : []),
    );
  });

  const countFirst = async (recovered: string) => {
    await click("Resend…");
    await click("Count");
    await shows(recovered);
  };

  test.each([
    ["All but shadowed and superseded", undefined, 3],
    ["Failed", "failed", 2],
    ["Held", "held", 1],
  ])("of the last 24 hours with the choice %s sends the status %s", async (choice, status, total) => {
    respond("POST recover", () => json({ count: 0, complete: true, next_cursor: null }, {}, 202));
    await start();
    await countFirst("3 would be sent again: 2 failed, 1 held, 0 waiting.");
    // Another choice needs another count.
    await enter("Held", true);
    await enter(choice, true);
    await click("Count");
    await click(`Resend ${total}`);
    await shows("There was nothing to resend.");
    const since = new Date(now - 24 * 3_600_000).toISOString();
    expect(sentTo("POST recover").map(({ body }) => body)).toEqual([{ since, ...(status && { status }) }]);
  });

  test("continues call by call until it is complete, shows the progress, and can begin again after an error", async () => {
    const lastCall = Promise.withResolvers<void>();
    respond("POST recover", async () => {
      const { length } = sentTo("POST recover");
      if (length === 2) return failure(409, "conflict", "Not now.");
      if (length < 5) return json({ count: 500, complete: false, next_cursor: `c${length}` }, {}, 202);
      await lastCall.promise;
      return json({ count: 3, complete: true, next_cursor: null }, {}, 202);
    });
    await start();
    await countFirst("3 would be sent again");
    await click("Resend 3");
    await shows("Not now.");
    // Another time needs another count.
    await enter("Created since", "");
    expect(disabled()).toEqual(["Count"]);
    await enter("Created since", "2030-01-01T00:00");
    await click("Count");
    expect(disabled()).toEqual(["Resend"]);
    await enter("Created since", "2026-11-21T00:00");
    await click("Count");
    await shows("3 would be sent again");
    await click("Resend 3");
    await shows("1000 sent again so far.");
    lastCall.resolve();
    await shows("1003 deliveries resent.");
    const bodies = sentTo("POST recover").map(({ body }) => body);
    const first = { since: expect.any(String) };
    const next = ["c1", undefined, "c3", "c4"].map((cursor) => ({ ...first, ...(cursor && { cursor }) }));
    expect(bodies).toEqual([first, ...next]);
  });

  test("whose choice is changed while it is counted is counted again", async () => {
    const isCounted = Promise.withResolvers<void>();
    respond("GET deliveries", async ({ query }) => {
      if (query.limit === "100") await isCounted.promise;
      return json([]);
    });
    await start();
    for (const name of ["Resend…", "Count"]) await click(name);
    await enter("Held", true);
    isCounted.resolve();
    await until(() => !textOf().includes("Counting…"));
    expect(textOf()).not.toContain("would be sent again");
    await click("Count");
    await shows("0 would be sent again");
  });

  test("counts the newest 2000 deliveries", async () => {
    const id = `${now.toString(16).padStart(12, "0").replace(/^.{8}/, "$&-")}-7000-8000-00000000d301`;
    const page = Array(100).fill({ ...deliveryOf(0, "failed"), id });
    respond("GET deliveries", () => json(page, { Link: '<https://api.test/v1/next?cursor=c>; rel="next"' }));
    await start();
    await countFirst("At least 2000 would be sent again");
  });

  test("whose dialog was closed makes no further call, and shows what was sent", async () => {
    const isClosed = Promise.withResolvers<void>();
    respond("POST recover", async () => {
      await isClosed.promise;
      const complete = sentTo("POST recover").length > 1;
      return json({ count: 500, complete, next_cursor: complete ? null : "c1" }, {}, 202);
    });
    await start();
    await countFirst("3 would be sent again");
    await click("Resend 3");
    await click("Cancel");
    isClosed.resolve();
    await shows("500 deliveries resent.");
    await elapse(5_000);
    expect(sentTo("POST recover")).toHaveLength(1);
  });
});

test("the events of a project: older ones are added page by page, new ones as they are stored", async () => {
  const eventOf = (number: number) => {
    const id = `e-${String(number).padStart(3, "0")}`;
    const time = new Date(now - number * 1000).toISOString();
    const received_at = new Date(Date.parse(time) + 57_000 + number * 1000).toISOString();
    return { id, event: "deploy.started", deployment_id: id, timestamp: time, received_at, payload: {} };
  };
  const link = (after: string, rel: string) => `<https://api.test/v1/events?after=${after}>; rel="${rel}"`;
  const pages: Record<string, [items: number[], link: string]> = {
    "": [[2], `${link("older", "next")}, ${link("new", "monitor")}`],
    older: [[], link("oldest", "next")],
    oldest: [[3], link("last", "next")],
    last: [[4], link("end", "next")],
    end: [[5], ""],
    new: [[1], link("newer", "next")],
    newer: [[0], link("newest", "monitor")],
    newest: [[], link("newest", "monitor")],
  };
  const held: Record<string, Promise<void>> = {};
  respond("GET events", async ({ query }) => {
    await held[query.after ?? ""];
    const [items, Link] = pages[query.after ?? ""] ?? [[], ""];
    return json(items.map(eventOf), { Link });
  });
  const shown = () => textOf().match(/e-\d{3}/g);
  await start(`#/projects/${projectId}/events`);
  await until(() => shown()?.length === 1);
  // A page without events is no reason to click again, and one with an event is no reason to read on.
  await click("Load more");
  expect(shown()).toEqual(expect.arrayContaining(["e-002", "e-003"]));
  await elapse(6_000);
  expect(shown()).toEqual(["e-000", "e-001", "e-002", "e-003"]);
  // The last one was received 60 seconds after its time.
  expect(textOf()).not.toContain("later");
  await click("Load more");
  await until(() => shown()?.includes("e-004") ?? false);
  expect(textOf()).toContain("received 1 min later");
  // The last page arrives before a response with newer events that was requested earlier.
  const arrival = { end: Promise.withResolvers<void>(), newest: Promise.withResolvers<void>() };
  Object.assign(held, { end: arrival.end.promise, newest: arrival.newest.promise });
  await elapse(6_000);
  await click("Load more");
  arrival.end.resolve();
  arrival.newest.resolve();
  await elapse(1_000);
  expect(shown()).toEqual(["e-000", "e-001", "e-002", "e-003", "e-004", "e-005"]);
  expect(textOf()).not.toContain("Load more");
  const afters = sentTo("GET events").map(({ query }) => query.after ?? "");
  expect(new Set(afters)).toEqual(new Set(Object.keys(pages)));
});

test("older events that arrive after the filter was changed are not shown", async () => {
  const isChanged = Promise.withResolvers<void>();
  const eventOf = (id: string, event: string) => ({
    ...{ id, event, deployment_id: id, timestamp: at, received_at: at, payload: {} },
  });
  respond("GET events", async ({ query }) => {
    if (query.event) return json([eventOf("e-failed", "deploy.failed")]);
    if (query.after === undefined)
      return json([eventOf("e-new", "deploy.started")], { Link: '<https://api.test/v1/events?after=old>; rel="next"' });
    await isChanged.promise;
    return json([eventOf("e-old", "deploy.started")]);
  });
  await start(`#/projects/${projectId}/events`);
  await shows("e-new");
  await click("Load more");
  await open(`#/projects/${projectId}/events?event=deploy.failed`);
  await shows("e-failed");
  isChanged.resolve();
  await elapse(10_000);
  expect(textOf().match(/e-(old|new|failed)/g)).toEqual(["e-failed"]);
});

test("a key is marked as expired from the moment on at which it expires", async () => {
  const { KeyExpiry } = await source("parts/key-limits.tsx");
  render(KeyExpiry, { expires_at: new Date().toISOString() });
  expect(textOf()).toBe("expired");
});

test("a rotation is shown until the previous secret expires", async () => {
  const { recordRotation } = await source("data/session.ts");
  recordRotation(webhookId, now + 30_000);
  await start();
  await shows("Deliveries are signed with both the previous and the new secret.");
  // It counts down by the second.
  await elapse(31_000);
  expect(textOf()).not.toContain("signed with both");
});

test("a list whose filter was changed and whose load fails shows no row of the filter before", async () => {
  const isLoaded = Promise.withResolvers<void>();
  respond("GET deliveries", async ({ query }) => {
    if (!query.status) return json([deliveryOf(1)]);
    await isLoaded.promise;
    return failure(400, "validation_error", "No.");
  });
  await start();
  await until(() => count("tr") === 2);
  await open(`${hash}?status=failed`);
  expect(count("tr")).toBe(0);
  isLoaded.resolve();
  await shows("validation_error");
  expect(count("tr")).toBe(0);
});

test("older rows that arrive after the filter was changed do not change how many of the new list are reloaded", async () => {
  const isChanged = Promise.withResolvers<void>();
  respond("GET deliveries", async ({ query }) => {
    if (query.cursor) await isChanged.promise;
    const first = query.cursor ? 100 : 200;
    return json(
      Array.from({ length: 20 }, (_, index) => deliveryOf(first - index)),
      { Link: '<https://api.test/v1/next?cursor=1>; rel="next"' },
    );
  });
  await start();
  await click("Load more");
  await open(`${hash}?status=succeeded`);
  isChanged.resolve();
  await elapse(10_000);
  expect(sentTo("GET deliveries").at(-1)?.query).toEqual({ status: "succeeded", limit: "20" });
});
