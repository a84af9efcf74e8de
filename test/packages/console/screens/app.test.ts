import { jest } from "@jest/globals";
import { browser, click, count, elapse, open, shows, textOf, textsOf, until } from "../../../support/browser-page.ts";
import {
  at,
  close,
  deliveryOf,
  failure,
  hash,
  json,
  now,
  projectId,
  render,
  respond,
  sent,
  sentTo,
  show,
  source,
  start,
  useConsole,
  webhook,
  webhookId,
} from "../../../support/console-app.ts";

/* The session of the console, and its loads when the API responds slowly or with errors. */

useConsole();

test("the subject of a token is read from base64url", async () => {
  const { sessionOf } = await source("data/session.ts");
  const sub = "ü?>ÿ".repeat(3);
  const claims = Buffer.from(JSON.stringify({ sub })).toString("base64url");
  expect(claims).toMatch(/_.*-|-.*_/);
  expect(sessionOf("e30.e30.c2ln/").kind).toBe("key");
  expect(sessionOf("e30.not-json.c2ln")).toMatchObject({ kind: "jwt", user: undefined });
  expect(sessionOf(`Bearer e30.${claims}.c2ln`)).toMatchObject({ kind: "jwt", user: sub, expiresAt: undefined });
});

test.each([
  ["#token=a.b.c", "a.b.c", 1],
  ["#token=a.b.c/d", undefined, 1],
  ["#/keys", undefined, 0],
])("the address %s contains the token %s, and no token stays in it", async (address, token, count) => {
  const { takeTokenFromAddress } = await source("data/session.ts");
  const replaceState = jest.fn();
  Object.assign(globalThis, { history: { replaceState } });
  browser.location.hash = address;
  expect([takeTokenFromAddress(), replaceState.mock.calls.length]).toEqual([token, count]);
});

test("signing out forgets the signing secrets that were shown, and the rotations", async () => {
  const { previousSecretExpiresAt, recordRotation, revealedSecrets } = await source("data/session.ts");
  respond(`GET ${webhookId}`, () => json({ ...webhook, health: { ...webhook.health, last_success_at: at } }));
  await start();
  await shows("No deliveries yet");
  expect(textOf()).not.toContain("does it reject what is forged?");
  revealedSecrets.set(webhookId, "whsec_shown");
  // Its first steps stay for the session that created it.
  await shows("does it reject what is forged?");
  for (const [id, expiresAt] of Object.entries({ [webhookId]: now + 60_000, other: now + 120_000 })) {
    recordRotation(id, expiresAt);
  }
  await shows("The previous one expires in 00:");
  expect(previousSecretExpiresAt("other")).toBe(now + 120_000);
  await click("Sign out");
  expect([...revealedSecrets]).toEqual([]);
  expect(browser.stored.size).toBe(0);
});

test("invisible characters are shown as codes, so that two names differ", async () => {
  const project = { role: "admin", created_at: at };
  const names = ["sh\u200bop", "shop\u{e0041}", "👩🏽‍🚀 می\u200cخواهم"];
  respond("GET v1/projects", () => json(names.map((name, index) => ({ ...project, id: `p-${index}`, name }))));
  await start("");
  await shows("sh\\u200bop");
  expect(textOf()).toContain("shop\\udb40\\udc41");
  expect(textOf()).toContain("👩🏽‍🚀 می\u200cخواهم");
});

test("the header counts down only the last five minutes of a session", async () => {
  await start("#/keys", 301);
  expect(textOf()).not.toContain("session ends in");
  await shows("session ends in 04:");
});

test("a link that is clicked as soon as the page is shown leads to its screen", async () => {
  await start("");
  close();
  show();
  browser.location.hash = "#/keys";
  browser.window.dispatchEvent(new Event("hashchange"));
  await shows("No API keys yet");
});

test("a part of the page whose code cannot be loaded says so, and the page can be loaded again", async () => {
  const reload = jest.fn();
  Object.assign(browser.location, { reload });
  const { lazy } = await source("parts/lazy.tsx");
  render(lazy(() => Promise.reject(new TypeError("Failed to fetch"))));
  await shows("This part of the page could not be loaded.");
  await click("Reload the page");
  expect(reload).toHaveBeenCalledTimes(1);
});

test("pages of admins show no message until the role is known", async () => {
  const isShown = Promise.withResolvers<void>();
  respond("GET v1/projects", async () => {
    await isShown.promise;
    return json([{ id: projectId, name: "Shop", role: "viewer", created_at: at }]);
  });
  await start(`#/projects/${projectId}/access`);
  await until(() => count("h1") === 1);
  expect(textOf()).not.toContain("Only admins");
  isShown.resolve();
  await shows("Only admins of the project see this page");
});

describe("a failed load", () => {
  test("a 429 is sent again after its Retry-After, which is shown, and also after the client has given up", async () => {
    let left = 5;
    respond("GET v1/api-keys", () => {
      left -= 1;
      return left < 0 ? json([]) : failure(429, "rate_limited", "Wait.", { "Retry-After": "6" });
    });
    await start("#/keys");
    await shows("Retrying in 6 s.");
    await elapse(5_500);
    expect(textOf()).toContain("Retrying in 6 s.");
    expect([sentTo("GET v1/api-keys").length, textsOf("alert")]).toEqual([1, []]);
    await shows("try again in 6 s");
    expect(sentTo("GET v1/api-keys")).toHaveLength(4);
    await shows("No API keys yet");
    expect([sentTo("GET v1/api-keys").length, textsOf("alert")]).toEqual([6, []]);
  });

  test("an error shows its message, code and request id, the loaded rows stay, and it is retried", async () => {
    respond("GET deliveries", () => json([deliveryOf(1)]));
    await start();
    await until(() => count("tr") === 2);
    respond("GET deliveries", () => failure(500, "internal_error", "Something went wrong on our side."));
    await shows("not live");
    expect(textsOf("alert")).toEqual([
      expect.stringMatching(/^Something went wrong on our side\. internal_error.*request r-42/),
    ]);
    expect(count("tr")).toBe(2);
    respond("GET deliveries", () => json([deliveryOf(1)]));
    await until(() => textsOf("alert").length === 0);
  });

  test("an outage of every load is shown once, and Retry loads everything again", async () => {
    await start();
    await shows("No deliveries yet");
    const fetched = jest.mocked(globalThis.fetch);
    const stub = fetched.getMockImplementation();
    fetched.mockRejectedValue(new TypeError("Failed to fetch"));
    await elapse(6_000);
    expect(textsOf("alert")).toEqual([expect.stringContaining("Could not reach the service.")]);
    expect(textOf()).toContain("not live");
    if (stub) fetched.mockImplementation(stub);
    sent.length = 0;
    await click("Retry now");
    expect(textsOf("alert")).toEqual([]);
    expect(sent.map(({ path }) => path.split("/").at(-1)).sort()).toEqual([webhookId, "deliveries"].sort());
  });

  const { id } = deliveryOf(1);
  const project = { id: projectId, name: "Shop", role: "admin", created_at: at };
  test.each([
    ["projects", "#/projects", "v1/projects", [project], "Shop"],
    ["API keys", "#/keys", "v1/api-keys", [], "No API keys yet"],
    ["a project", `#/projects/${projectId}`, "webhooks", [webhook], "example.com/hook"],
    ["a webhook", hash, webhookId, webhook, "Rotate secret"],
    ["a webhook without its project", `${hash}/verify`, "v1/projects", [project], "Rotate secret"],
    ["a delivery", `${hash}/deliveries/${id}`, id, { ...deliveryOf(1), payload: {}, attempts: [] }, "Copy payload"],
    ["service accounts", `#/projects/${projectId}/access`, "service-accounts", [], "No service accounts yet"],
  ])(
    "the screen of %s shows one heading, no skeleton, and keeps what it has loaded",
    async (_, address, end, data, shown) => {
      const isFailing = () => textsOf("alert").some((text) => text.includes("Out of order."));
      const classes = () => browser.page.body.all().map((node) => node.getAttribute("class"));
      const fail = () => failure(500, "internal_error", "Out of order.");
      respond(`GET ${end}`, fail);
      await start(address);
      await until(isFailing);
      await elapse(200);
      expect([count("h1"), classes().includes("skeleton")]).toEqual([1, false]);
      respond(`GET ${end}`, () => json(data));
      await until(() => !isFailing());
      await shows(shown);
      respond(`GET ${end}`, fail);
      await until(isFailing);
      expect([count("h1"), textOf()]).toEqual([1, expect.stringContaining(shown)]);
    },
  );

  test("a 404 is shown, and not requested again", async () => {
    respond(`GET ${webhookId}`, () => failure(404, "not_found", "There is no such webhook."));
    await start();
    await shows("not_found");
    expect([count("h1"), textOf()]).toEqual([1, expect.stringContaining("Projects / Shop / Webhook")]);
    await elapse(60_000);
    expect(sentTo(`GET ${webhookId}`)).toHaveLength(1);
  });

  test("retries wait for 2, 4, 8, 16 and then 30 seconds, and for a device that is online again not at all", async () => {
    const times: number[] = [];
    respond("GET api-keys", () => {
      times.push(Date.now());
      return failure(500, "internal_error", "No.");
    });
    await start("#/keys");
    await elapse(95_000);
    const waits = times.slice(1).map((time, index) => Math.round((time - (times[index] ?? 0)) / 1000));
    expect(waits.slice(0, 6)).toEqual([2, 4, 8, 16, 30, 30]);
    const before = times.length;
    for (const _ of [1, 2]) browser.window.dispatchEvent(new Event("online"));
    await elapse(100);
    expect(times).toHaveLength(before + 2);
    // The wait before it has ended too: the next retry is one, 30 seconds later.
    await elapse(29_000);
    expect(times).toHaveLength(before + 2);
    await elapse(2_000);
    expect(times).toHaveLength(before + 3);
    // Nor does it send a request beside one that takes longer.
    respond("GET api-keys", () => {
      times.push(Date.now());
      return new Promise(() => {});
    });
    browser.window.dispatchEvent(new Event("online"));
    await elapse(31_000);
    expect(times).toHaveLength(before + 4);
    await open("#/projects");
    expect(textsOf("alert")).toEqual([]);
    const left = times.length;
    browser.window.dispatchEvent(new Event("online"));
    await elapse(100);
    expect(times).toHaveLength(left);
  });

  test("retries begin with 2 seconds again after a success", async () => {
    const outcomes: [isOk: boolean, at: number][] = [];
    respond("GET deliveries", () => {
      const isOk = outcomes.length === 3;
      outcomes.push([isOk, Date.now()]);
      return isOk ? json([]) : failure(500, "internal_error", "No.");
    });
    await start();
    await until(() => outcomes.length === 6);
    const waits = outcomes.slice(1).map(([, at], index) => Math.round((at - (outcomes[index]?.[1] ?? 0)) / 1000));
    expect([waits.slice(0, 3), waits.slice(4)]).toEqual([[2, 4, 8], [2]]);
  });
});

test("an outage has no box of its own while the device is offline", async () => {
  await start();
  await shows("No deliveries yet");
  browser.isOnline = false;
  browser.window.dispatchEvent(new Event("offline"));
  jest.mocked(globalThis.fetch).mockRejectedValue(new TypeError("Failed to fetch"));
  await elapse(6_000);
  expect([textOf().includes("You are offline."), textOf().includes("Retry now")]).toEqual([true, false]);
});

describe("requests of a screen", () => {
  test("a closed screen cancels its request in flight, and sends no more", async () => {
    await start();
    await shows("No deliveries yet");
    respond("GET deliveries", ({ signal }) => new Promise((_, reject) => signal?.addEventListener("abort", reject)));
    sent.length = 0;
    await until(() => sentTo("GET deliveries").length === 1);
    const [inFlight] = sentTo("GET deliveries");
    await open("#/keys");
    expect([inFlight?.signal?.aborted, textsOf("alert")]).toEqual([true, []]);
    sent.length = 0;
    await elapse(60_000);
    expect(new Set(sent.map(({ path }) => path))).toEqual(new Set(["/v1/api-keys", "/v1/projects"]));
  });
});
