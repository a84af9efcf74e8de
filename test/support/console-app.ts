import { getEventListeners } from "node:events";
import { join } from "node:path";
import { jest } from "@jest/globals";
import { undocumentedRequest } from "./api-contract.ts";
import {
  account,
  ago,
  at,
  attempt,
  audit,
  deliveries,
  events,
  failed,
  keys,
  newest,
  now,
  otherProjectId,
  projectId,
  report,
  stats,
  webhook,
  webhookId,
  webhooks,
  workflow,
} from "./api-samples.ts";
import { browser, elapse, shows } from "./browser-page.ts";

/* The console in the page of browser-page.ts, with a clock that stands still. The API is a stub in place of `fetch`. */

export { at, attempt, deliveryOf, now, projectId, webhook, webhookId } from "./api-samples.ts";

interface Sent {
  method: string;
  path: string;
  query: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what is under test
  body: any;
  signal: AbortSignal | undefined;
}
type Respond = (request: Sent) => Response | Promise<Response>;
interface Preact {
  h(component: unknown, props: object): unknown;
  render(node: unknown, parent: unknown): void;
}
// Not literals, because the modules need the types of a browser, which the tests do not have.
export const source = (file: string) => import(join(import.meta.dirname, "../../packages/console/src", file));
const preact: Preact = await import("preact" as string);

let App: unknown;
/** The requests so far, oldest first. */
export const sent: Sent[] = [];
/** How requests differ from the documentation of the API. A test that expects one takes it out. */
export const undocumented: string[] = [];
/** By method and end of the path, such as `GET deliveries`. The last row that matches responds. */
let routes: [route: string, respond: Respond][];

/** The address of the webhook's screen. */
export const hash = `#/projects/${projectId}/webhooks/${webhookId}`;
export const json = (data: unknown, headers = {}, status = 200) =>
  new Response(JSON.stringify({ data }), { status, headers });
export const failure = (status: number, code: string, message: string, headers = {}) =>
  new Response(JSON.stringify({ error: { code, message, request_id: "r-42" } }), { status, headers });
export const respond = (route: string, response: Respond) => void routes.push([route, response]);
export const sentTo = (route: string) =>
  sent.filter(({ method, path }) => {
    const [expected, end] = route.split(" ");
    return method === expected && path.endsWith(`/${end}`);
  });

/** The first page of a list that has another one. */
const page = (items: unknown[]) => json(items, { Link: `<https://api.test/v1/next?cursor=1>; rel="next"` });

/** Responds with the samples of api-samples.ts, so that every screen has something to show. */
export function respondWithSamples(): void {
  const projects = [
    { id: projectId, name: "Shop", role: "admin", created_at: ago(86_400) },
    { id: otherProjectId, name: "Library", role: "viewer", created_at: ago(60) },
  ];
  respond("GET v1/projects", () => json(projects));
  respond("GET webhooks", () => json(webhooks));
  respond("GET stats", ({ query }) => json({ ...stats, ...query }));
  respond("GET deliveries", () => page(deliveries));
  respond(`GET ${newest.id}`, () =>
    json({
      ...newest,
      payload: { event: "deploy.failed", reason: "größer" },
      attempt_count: 2,
      attempts: [failed, { ...attempt, number: 2, request_count: 2, trigger: "redeliver" }],
    }),
  );
  respond("GET c-1", () => json({ ...report, status: "running" }));
  respond("GET events", () => page(events));
  respond("GET api-keys", ({ query }) => json(query.include === "last_use" ? keys : []));
  respond("GET members", () => json([{ user_id: "ann", role: "admin", created_at: account.created_at }]));
  respond("GET service-accounts", () => json([account]));
  respond("GET trusted-workflows", () => json([workflow, { ...workflow, id: "t-2", name: null }]));
  respond("GET audit-events", () => page(audit));
  respond("GET receivers.json", () =>
    Response.json({ "node/verify-webhook.mjs": "code", "node/express.mjs": "code for Express" }),
  );
}

/** Renders a component in place of the page. */
export const render = (component: unknown, props = {}) => preact.render(preact.h(component, props), browser.page.body);
/** Opens the console. */
export const show = (options: { signInCommand?: string | undefined } = {}) =>
  render(App, { apiUrl: "https://api.test", canSendEvents: true, ...options });
/** Closes the console. */
export const close = () => preact.render(null, browser.page.body);

/** Opens the console with an API key as its credential. */
export async function startWithKey(address: string, prefix: string): Promise<void> {
  browser.stored.set("credential", prefix.padEnd(68, "0"));
  browser.location.hash = address;
  show();
  await shows("Sign out");
}

/** Opens the console with a session that ends after an hour. */
export async function start(address = hash, expiresInSeconds = 3600): Promise<void> {
  const part = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
  browser.stored.set("credential", `${part({})}.${part({ sub: "me", exp: now / 1000 + expiresInSeconds })}.c2ln`);
  browser.location.hash = address;
  show();
  await shows("Sign out");
}

/** Closes the console after each test of the file, and checks that it leaves no listener and no timer. */
export function useConsole(): void {
  beforeEach(async () => {
    jest.useFakeTimers({ doNotFake: ["queueMicrotask", "nextTick", "setImmediate"], now });
    jest.spyOn(Math, "random").mockReturnValue(0);
    sent.length = 0;
    routes = [
      ["GET v1/projects", () => json([{ id: projectId, name: "Shop", role: "admin", created_at: at }])],
      ["GET v1/api-keys", () => json([])],
      [`GET ${webhookId}`, () => json(webhook)],
      ["GET deliveries", () => json([])],
    ];
    jest.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = input instanceof Request ? input : new Request(new URL(String(input), "https://api.test/"), init);
      const { pathname: path, searchParams } = new URL(request.url);
      const text = await request.text();
      const each: Sent = {
        ...{ method: request.method, path, query: Object.fromEntries(searchParams), signal: init?.signal ?? undefined },
        body: text === "" ? undefined : JSON.parse(text),
      };
      sent.push(each);
      if (path.startsWith("/v1/")) undocumented.push(...undocumentedRequest(request, text));
      const [, response] = routes.findLast(([route]) => sentTo(route).includes(each)) ?? [];
      return response?.(each) ?? failure(404, "not_found", `No stub for ${each.method} ${path}.`);
    });
    ({ App } = await source("screens/app.tsx"));
  });

  afterEach(async () => {
    close();
    // The longest message.
    await elapse(5_000);
    const left = ["online", "offline"].flatMap((name) => getEventListeners(browser.window, name));
    expect([...left, ...getEventListeners(browser.page, "visibilitychange")]).toEqual([]);
    expect(jest.getTimerCount()).toBe(0);
    expect(undocumented.splice(0)).toEqual([]);
    Object.assign(browser, { isOnline: true, copied: "", blocksCopy: false });
    browser.page.hidden = false;
    jest.restoreAllMocks();
    jest.useRealTimers();
  });
}
