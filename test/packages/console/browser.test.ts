import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { mintToken } from "../../../bin/command/mint-token.ts";
import { eventNames } from "../../../functions/foundation/manifest/events.ts";
import { tables } from "../../../functions/foundation/manifest/tables.ts";
import { handler as upsertMember } from "../../../functions/identity/members/upsert-member.ts";
import { bodySignature } from "../../../functions/webhooks/receiver/signature.ts";
import { eventually, MAX_QUIET_MS } from "../../support/eventually.ts";
import { freshDataDir, type LocalRun, startLocalRun } from "../../support/local-run.ts";
import { needs } from "../../support/optional-program.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { type Response, send } from "../../support/service.ts";

/* The console in a real browser, served by a local run. All tests share one browser and one service. */

const executablePath = [process.env.CHROMIUM_PATH, "/usr/bin/chromium", "/usr/bin/google-chrome"].find(
  (path) => path !== undefined && existsSync(path),
);
const inChromium = needs({ name: "Chromium (or CHROMIUM_PATH)", isInstalled: executablePath !== undefined });

const VIEWPORT = { width: 1280, height: 860 };
/** Upper bound for one condition in the page: it may depend on a delivery. */
const DEADLINE_MS = MAX_QUIET_MS;

let run: LocalRun;
let dataDir: string;
let browser: Browser;
/** The console stores everything in the tab, so tests that only use a tab share a context. */
let shared: BrowserContext;
const receivers: Receiver[] = [];

/** Script errors, policy violations and failed requests that the browser reported. */
const browserErrors: string[] = [];
/** Reports that the current test causes. The browser logs every failed request. */
let expected: RegExp[] = [];
const pages: Page[] = [];

/**
 * Divides the intervals at which the console reloads, so that tests do not wait for them. Other timers, such as that of a
 * message, keep their time.
 */
const shorterIntervals = `{
  const { setTimeout } = window;
  const intervals = [1_500, 2_000, 3_000, 5_000, 10_000, 15_000];
  window.setTimeout = (callback, ms, ...rest) => setTimeout(callback, intervals.includes(ms) ? ms / 8 : ms, ...rest);
}`;

async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: VIEWPORT, ...options });
  await context.addInitScript(shorterIntervals);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: run.baseUrl });
  return context;
}

/**
 * Opens a tab.
 * @param context one of its own, which a test needs that changes more than its tab, such as the network; absent = the
 * shared context, in which a tab starts no process
 */
async function newPage(context = shared): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) browserErrors.push(message.text());
  });
  page.on("pageerror", (error) => browserErrors.push(String(error)));
  page.on("dialog", (dialog) => {
    browserErrors.push(`a browser dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${run.baseUrl}/`)) browserErrors.push(`a request to ${request.url()}`);
  });
  pages.push(page);
  return page;
}

const consoleOf = ({ page, baseUrl }: LocalRun): string =>
  /^\S+\/console\/#token=\S+$/m.exec(page)?.[0] ?? `${baseUrl}/no-console-address-on-the-start-page`;

/** Opens a page with a session, at an address behind `#`. */
async function signedIn(hash = "", { token = run.token, context }: { token?: string; context?: BrowserContext } = {}) {
  const page = await newPage(context);
  await signIn(page, hash, token);
  return page;
}

async function signIn(page: Page, hash = "", token = run.token): Promise<void> {
  await page.goto(`${run.baseUrl}/console/#token=${token}`);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  if (hash !== "") await page.goto(`${run.baseUrl}/console/${hash}`);
}

const tokenOf = (userId: string, expiresInSeconds = 3600) =>
  mintToken(readFileSync(join(dataDir, "jwt-secret"), "utf8"), userId, expiresInSeconds);

function call(method: string, path: string, body?: object, token = run.token): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return send(`${run.baseUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

async function newReceiver(): Promise<Receiver> {
  const started = await startReceiver();
  receivers.push(started);
  return started;
}

/** Creates a project with one webhook. */
async function newScenario({ name = "Shop", url = "https://example.com/hook" } = {}) {
  const projectId = randomUUID();
  await upsertMember({ user_id: "demo-user", project_id: projectId, name });
  const { body } = await call("POST", `/v1/projects/${projectId}/webhooks`, { url, events: eventNames });
  const hash = `#/projects/${projectId}/webhooks/${body.data.id}`;
  return { projectId, webhook: body.data, hash, path: `/v1/projects/${projectId}/webhooks/${body.data.id}` };
}

async function sendEvent(project_id: string, data: unknown, raw?: (text: string) => string): Promise<void> {
  const text = JSON.stringify({
    event: "deploy.failed",
    project_id,
    deployment_id: randomUUID(),
    timestamp: new Date().toISOString(),
    data,
  });
  const sqs = new SQSClient({ endpoint: new URL(run.eventsQueueUrl).origin });
  await sqs.send(new SendMessageCommand({ QueueUrl: run.eventsQueueUrl, MessageBody: raw?.(text) ?? text }));
}

const axe = readFileSync(join(import.meta.dirname, "../../../node_modules/axe-core/axe.min.js"), "utf8");

/**
 * The violations of accessibility rules that axe-core finds, with the elements.
 * @param selector of the part that is checked; absent = the whole page
 */
async function violationsIn(page: Page, selector = "html"): Promise<string[]> {
  // The page's policy stays in force: the browser's protocol is not subject to it.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe);
  return page.evaluate<string[]>(`axe.run("${selector}", { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + " " + target + " " + failureSummary)))`);
}

const clipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");
const stored = (page: Page) =>
  page.evaluate<object>("({ session: { ...sessionStorage }, local: { ...localStorage }, cookie: document.cookie })");

/** The name of the element that has the focus. */
const focused = (page: Page) =>
  page.evaluate<string>(`(({ activeElement: element }) =>
    element.getAttribute("aria-label") ?? (element.labels?.[0] ?? element).textContent.trim())(document)`);

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press("Tab");
    if ((await focused(page)) === name) return;
  }
  throw new Error(`Tab does not reach ${name}`);
}

inChromium.describe("the console in Chromium", () => {
  beforeAll(async () => {
    dataDir = freshDataDir();
    run = await startLocalRun({
      DATA_DIR: dataDir,
      RETRY_SCHEDULE: "1,600",
      LAST_USED_RESOLUTION_SECONDS: "0",
      // Nothing is fetched from it until a workflow presents a token.
      OIDC_ISSUERS: JSON.stringify([{ name: "github", audience: "deployments" }]),
    });
    // Handlers called in this process use the tables of the local run.
    process.env.AWS_ENDPOINT_URL_DYNAMODB = run.dynamoEndpoint;
    for (const { env, name } of Object.values(tables)) process.env[env] = name;
    browser = await chromium.launch({
      executablePath: executablePath ?? "",
      args: [
        "--no-sandbox",
        "--headless=new",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        // Tabs of a context share a process, which half of the CPU time would otherwise go into starting.
        "--process-per-site",
      ],
    });
    shared = await newContext();
    // Keeps the process alive between two tests.
    await (await shared.newPage()).goto(`${run.baseUrl}/console/config.json`);
  });

  afterAll(async () => {
    await browser?.close();
    await run?.end("SIGKILL");
    await Promise.all(receivers.map((each) => each.close()));
  });

  afterEach(async () => {
    const open = pages.splice(0).map((page) => (page.context() === shared ? page.close() : page.context().close()));
    await Promise.all(open);
    const unexpected = browserErrors.splice(0).filter((text) => !expected.some((pattern) => pattern.test(text)));
    expected = [];
    expect(unexpected).toEqual([]);
  });

  test("the API page shows an operation, and loads nothing from elsewhere", async () => {
    const page = await newPage();
    // The logo of Redoc, which the policy of the page blocks.
    expected = [/cdn\.redoc\.ly/];
    await page.goto(`${run.baseUrl}/docs`);
    await page.getByText("API keys", { exact: true }).first().click();
    await page.getByRole("heading", { name: "Create an API key" }).waitFor();
  });

  describe("sign-in", () => {
    test("by the start page's link removes the token from the address, stores it only in the tab, and replaces a session", async () => {
      const page = await signedIn("#/keys", { token: tokenOf("demo-user", 60) });
      await page.goto(consoleOf(run));
      await page.getByRole("link", { name: "Demo project" }).waitFor();
      expect(page.url()).toBe(`${run.baseUrl}/console/`);
      expect(await stored(page)).toEqual({ session: { credential: run.token }, local: {}, cookie: "" });
      await page.reload();
      await page.getByText("demo-user").waitFor();

      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("JWT or API key").waitFor();
      expect(await stored(page)).toEqual({ session: {}, local: {}, cookie: "" });
    });
  });

  test("on a stage a token in a link signs no one in, and an admin sees no control that simulates deployments", async () => {
    const { projectId } = await newScenario();
    const page = await newPage();
    await page.route("**/config.json", (route) => route.fulfill({ json: { apiUrl: run.baseUrl, isLocal: false } }));
    await page.goto(`${run.baseUrl}/console/#token=${run.token}`);
    await page.getByLabel("JWT or API key").waitFor();
    expect(await stored(page)).toEqual({ session: {}, local: {}, cookie: "" });
    expect(page.url()).toBe(`${run.baseUrl}/console/`);

    await page.goto(`${run.baseUrl}/console/#/projects/${projectId}`);
    await page.getByLabel("JWT or API key").fill(run.token);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New webhook" }).waitFor();
    expect(await page.getByRole("button", { name: "Simulate a deployment" }).count()).toBe(0);
  });

  describe("API keys", () => {
    test("creates a key that is shown once, works, and is rejected after it is revoked", async () => {
      const page = await signedIn("#/keys");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("story");
      await page.getByLabel("All my projects").check();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog", { name: "Your new API key" });
      const key = await dialog.getByLabel("story").inputValue();
      expect(key).toMatch(/^svc_[0-9a-f]{64}$/);

      await page.keyboard.press("Escape");
      await dialog.getByText("Not copied yet").waitFor();
      await dialog.getByRole("button", { name: "Copy" }).click();
      expect(await clipboard(page)).toBe(key);
      await dialog.getByRole("button", { name: "Done" }).click();
      await dialog.waitFor({ state: "hidden" });
      expect(await page.content()).not.toContain(key);
      expect(JSON.stringify(await stored(page))).not.toContain(key);

      const row = page.getByRole("row", { name: "story" });
      await row.getByText(`${key.slice(0, 12)}…`).waitFor();
      await row.getByText("CI: read", { exact: true }).waitFor();
      await row.getByText("in 90 d").waitFor();
      await row.getByText("never").waitFor();
      expect((await call("GET", "/v1/projects", undefined, key)).status).toBe(200);

      await row.getByRole("button", { name: "Revoke story" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
      await page.getByText("API key “story” revoked.").waitFor();
      await row.waitFor({ state: "detached" });
      expect((await call("GET", "/v1/projects", undefined, key)).status).toBe(401);
    });
  });

  describe("webhooks and deliveries", () => {
    test("creates a webhook, shows code with its secret, and shows a delivery as it arrives", async () => {
      const target = await newReceiver();
      const { projectId } = await newScenario({ name: "Story" });
      const page = await signedIn(`#/projects/${projectId}`);
      await page.getByRole("button", { name: "New webhook" }).click();
      await page.getByLabel("URL").fill("http://example.com/plain");
      await page.getByRole("button", { name: "Create webhook" }).click();
      expected = [/status of 400/];
      await page.getByRole("alert").getByText("Correct the field that is marked").waitFor();
      expect(await page.getByLabel("URL").getAttribute("aria-invalid")).toBe("true");
      await page.getByLabel("URL").fill(target.url);
      await page.getByRole("button", { name: "Create webhook" }).click();
      const secret = await page.getByRole("textbox", { name: "Secret" }).inputValue();
      expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
      await page.getByRole("button", { name: "Copy" }).click();
      await page.getByRole("link", { name: "Show code with this secret" }).click();

      const code = page.getByRole("tabpanel");
      await code.getByText(secret).waitFor();
      for (const language of ["Python", "Go", "Ruby", "PHP", "Shell"]) {
        await page.keyboard.press("Tab");
        await page.getByRole("tab", { name: language }).click();
        expect(await code.textContent()).toContain(secret);
      }
      expect(JSON.stringify(await stored(page))).not.toContain(secret);
      const steps = page.getByRole("list", { name: "From new to live" }).getByRole("listitem");
      const texts = await steps.allTextContents();
      expect(texts.map((text) => text.split(":")[0])).toEqual(["Send test", "Certify", "Live"]);

      await page.getByRole("link", { name: "Deliveries" }).click();
      await page.getByText("No deliveries yet").waitFor();
      await page.locator("summary", { hasText: "More" }).click();
      await page.getByRole("button", { name: "Simulate a deployment" }).click();
      await page.getByRole("dialog").getByLabel("Event").fill("deploy.failed");
      await page.getByRole("button", { name: "Send deployment event" }).click();
      const row = page.getByRole("row", { name: "succeeded" });
      await row.waitFor();
      const [arrived] = await target.waitFor(1);
      expect(arrived?.headers["x-service-signature"]).toBe(bodySignature(arrived?.body ?? "", secret));

      await row.getByRole("link").click();
      const detail = page.getByRole("region", { name: "Delivery", exact: true });
      await detail.getByText("Attempt 1").waitFor();
      expect(await detail.getByText("200", { exact: true }).count()).toBe(1);
      expect(JSON.parse((await detail.getByLabel("Payload").textContent()) ?? "")).toEqual(
        JSON.parse(arrived?.body ?? ""),
      );
      await page.reload();
      await detail.getByText("Attempt 1").waitFor();
      await page.getByRole("link", { name: "Verify" }).click();
      expect(await code.textContent()).not.toContain("whsec_0");
      expect(await code.textContent()).toContain("whsec_…");
    });
  });

  describe("every screen", () => {
    interface Screen {
      hash: string;
      title: string;
      /** Visible once the screen has loaded. */
      shows: string;
      /** Buttons that open a dialog. */
      opens?: string[];
      /** Those in its menu. */
      inMenu?: string[];
    }
    const screens: Record<string, Screen> = {
      projects: { hash: "#/projects", title: "Projects", shows: "Your role" },
      "API keys": {
        hash: "#/keys",
        title: "API keys",
        shows: "Last used",
        opens: ["New key", "Rename own", "Roll own", "Revoke own"],
      },
      audit: { hash: "#/audit", title: "Audit", shows: "created the API key “own”" },
      "the access to a project": {
        hash: "PROJECT/access",
        title: "Access · Shop",
        shows: "Service accounts",
        opens: ["New service account", "Keys deploy job", "Delete deploy job", "Trust a workflow", "Delete main"],
      },
      "the audit of a project": { hash: "PROJECT/audit", title: "Audit · Shop", shows: "What was done to webhooks" },
      "a project": {
        hash: "PROJECT",
        title: "Shop",
        shows: "Last 24 h",
        opens: ["New webhook", "Simulate a deployment"],
      },
      "an empty project": { hash: "EMPTY", title: "Empty", shows: "No webhooks yet" },
      "the deliveries of a project": { hash: "PROJECT/deliveries", title: "Deliveries · Shop", shows: "Attempts" },
      "the events of a project": {
        hash: "PROJECT/events",
        title: "Events · Shop",
        shows: "No deployments in the last 30 days",
      },
      "a webhook": {
        hash: "PROJECT/webhooks/ENABLED",
        title: "RECEIVER",
        shows: "Attempts",
        opens: ["Send test"],
        inMenu: ["Edit", "Rotate secret", "Simulate a deployment", "Disable", "Delete", "Resend…"],
      },
      "a webhook's health": {
        hash: "PROJECT/webhooks/ENABLED/health",
        title: "Health · RECEIVER",
        shows: "Covers all",
      },
      "a webhook's certification": {
        hash: "PROJECT/webhooks/ENABLED/certification",
        title: "Certification · RECEIVER",
        shows: "Checks that the receiver verifies signatures",
        opens: ["Certify…"],
      },
      "a disabled webhook": {
        hash: "PROJECT/webhooks/DISABLED",
        title: "https://example.com/x",
        shows: "No deliveries yet",
      },
      "verification code": {
        hash: "PROJECT/webhooks/ENABLED/verify",
        title: "Verify · RECEIVER",
        shows: "express.mjs",
      },
      "a delivery": {
        hash: "PROJECT/webhooks/ENABLED/deliveries/DELIVERY",
        title: "deploy.started · RECEIVER",
        shows: "Attempt 1",
      },
      "an unknown page": { hash: "#/unknown", title: "Page not found", shows: "Page not found" },
    };

    let ids: Record<string, string>;
    const withIds = (text = "") => text.replace(/[A-Z]{5,}/g, (name) => ids[name] ?? name);

    beforeAll(async () => {
      const receiver = await newReceiver();
      const { projectId, path, webhook } = await newScenario({ url: receiver.url });
      const empty = randomUUID();
      const events = ["deploy.failed"];
      const disabled = await call("POST", `/v1/projects/${projectId}/webhooks`, {
        url: "https://example.com/x",
        events,
      });
      await call("PATCH", `/v1/projects/${projectId}/webhooks/${disabled.body.data.id}`, { enabled: false });
      const accounts = `/v1/projects/${projectId}/service-accounts`;
      const account = await call("POST", accounts, { name: "deploy job", role: "viewer" });
      await call("POST", `${accounts}/${account.body.data.id}/api-keys`, { name: "own" });
      const trust = { name: "main", issuer: "github", repository_id: "1296269", permissions: ["webhooks:read"] };
      await call("POST", `/v1/projects/${projectId}/trusted-workflows`, trust);
      // Repeated while the throttle of the endpoint rejects it.
      const sendTest = () => eventually(async () => expect((await call("POST", `${path}/test`, {})).status).toBe(202));
      await Promise.all(Array.from({ length: 21 }, sendTest));
      await receiver.waitFor(21);
      const [{ id: deliveryId }] = (await call("GET", `${path}/deliveries`)).body.data;
      const user_id = "admin-of-all-screens";
      await upsertMember({ user_id, project_id: projectId, name: "Shop" });
      await upsertMember({ user_id, project_id: empty, name: "Empty" });
      await call("POST", "/v1/api-keys", { name: "own" }, tokenOf(user_id));
      ids = {
        PROJECT: `#/projects/${projectId}`,
        EMPTY: `#/projects/${empty}`,
        ENABLED: webhook.id,
        DISABLED: disabled.body.data.id,
        DELIVERY: deliveryId,
        RECEIVER: receiver.url,
      };
    });

    async function open(page: Page, screen: string): Promise<void> {
      await page.goto(`${run.baseUrl}/console/${withIds(screens[screen]?.hash)}`);
      await page
        .getByRole("main")
        .getByText(screens[screen]?.shows ?? "")
        .first()
        .waitFor();
      await eventually(async () => expect(await page.locator(".skeleton").count()).toBe(0));
    }

    /** One of each layout. The colors of both themes and the width of every screen have tests below. */
    const checkedOnPhone = ["a project", "a webhook's health", "verification code", "a delivery"];

    test("has its title, a closed dialog returns the focus, and axe finds no violation, also in the dark theme on a phone", async () => {
      const page = await newPage();
      const violations: Record<string, string[]> = {};
      const check = async (name: string, selector = "html") => {
        const found = await violationsIn(page, selector);
        if (found.length > 0) violations[name] = found;
      };
      const checkDarkOnPhone = async (name: string) => {
        await page.emulateMedia({ colorScheme: "dark" });
        await page.setViewportSize({ width: 390, height: 844 });
        await check(`${name}, dark, on a phone`);
        await page.emulateMedia({ colorScheme: "light" });
        await page.setViewportSize(VIEWPORT);
      };
      await page.goto(`${run.baseUrl}/console/`);
      await page.getByLabel("JWT or API key").waitFor();
      await check("sign-in");
      await checkDarkOnPhone("sign-in");
      await signIn(page, "", tokenOf("admin-of-all-screens"));
      for (const [screen, { title, opens = [], inMenu = [] }] of Object.entries(screens)) {
        await open(page, screen);
        const expectedTitle = `${withIds(title)} · Deployment webhooks`;
        await eventually(async () => expect(await page.title()).toBe(expectedTitle));
        await check(screen);
        for (const button of [...opens, ...inMenu]) {
          if (inMenu.includes(button)) await page.getByRole("main").locator("summary", { hasText: "More" }).click();
          if (button === inMenu[0]) await check(`${screen}: menu`);
          await page.getByRole("main").getByRole("button", { name: button, exact: true }).click();
          await page.getByRole("dialog").getByRole("heading").waitFor();
          await eventually(async () => expect(await page.locator(".skeleton").count()).toBe(0));
          await check(`${screen}: ${button}`, "dialog");
          await page.keyboard.press("Escape");
          await page.getByRole("dialog").waitFor({ state: "detached" });
          await eventually(async () => expect(await focused(page)).toBe(inMenu.includes(button) ? "More" : button));
        }
        if (checkedOnPhone.includes(screen)) await checkDarkOnPhone(screen);
      }
      expect(violations).toEqual({});
    });
  });

  describe("after sign-out", () => {
    /** Everything in the tab that a script or the next user could read. */
    const tabContents = (page: Page) =>
      page.evaluate<string>(`(async () => JSON.stringify([
        { ...sessionStorage }, { ...localStorage }, document.cookie, window.name, history.state,
        location.href, document.referrer, performance.getEntries().map(({ name }) => name),
        await caches.keys(), (await indexedDB.databases()).map(({ name }) => name),
        document.documentElement.outerHTML,
        [...document.querySelectorAll("input, textarea")].map(({ value }) => value),
      ]))()`);

    /** Reveals a new signing secret and a new API key, and returns both. */
    async function revealSecrets(page: Page): Promise<string[]> {
      await page.getByRole("link", { name: "API keys" }).click();
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("kept");
      await page.getByLabel("All my projects").check();
      await page.getByRole("button", { name: "Create key" }).click();
      const key = await page.getByLabel("kept", { exact: true }).inputValue();
      await page.getByRole("button", { name: "Copy" }).click();
      await page.getByRole("button", { name: "Done" }).click();
      await page.goBack();
      await page.locator("summary", { hasText: "More" }).click();
      await page.getByRole("button", { name: "Rotate secret" }).click();
      await page.getByRole("button", { name: "Rotate", exact: true }).click();
      const secret = await page.getByRole("textbox", { name: "Secret" }).inputValue();
      expect([key, secret]).toEqual([expect.stringMatching(/^svc_\w{64}$/), expect.stringMatching(/^whsec_\w{64}$/)]);
      return [key, secret];
    }

    test("no credential or secret is left in the tab, its address or its history", async () => {
      const { hash, projectId } = await newScenario();
      await upsertMember({ user_id: "next-user", project_id: projectId, name: "Shop" });
      const page = await signedIn(hash);
      const secrets = [run.token, ...(await revealSecrets(page))];
      await page.getByRole("button", { name: "Copy" }).click();
      await page.getByRole("link", { name: "Show code with this secret" }).click();
      await page
        .getByRole("tabpanel")
        .getByText(secrets[2] ?? "")
        .waitFor();

      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("JWT or API key").waitFor();
      expect(await stored(page)).toEqual({ session: {}, local: {}, cookie: "" });
      const expectNoSecret = async () => {
        const contents = await tabContents(page);
        expect(secrets.filter((secret) => contents.includes(secret))).toEqual([]);
      };
      await expectNoSecret();
      for (let steps = 0; steps < 2; steps++) {
        await page.goBack();
        await page.getByLabel("JWT or API key").waitFor();
        await expectNoSecret();
      }

      // The next user of the tab opens the same address without a reload.
      await page.goto(`${run.baseUrl}/console/${hash}/verify`);
      await page.getByLabel("JWT or API key").fill(tokenOf("next-user"));
      await page.keyboard.press("Enter");
      await page.getByRole("tabpanel").getByText("whsec_…").waitFor();
      await expectNoSecret();
      expect(await page.getByText("The previous one expires in").count()).toBe(0);
    });

    test("a secret on the screen is removed when the session ends with a 401", async () => {
      expected = [/status of 401/];
      const { hash } = await newScenario();
      const page = await signedIn(hash);
      const secrets = [run.token, ...(await revealSecrets(page))];
      await page.route("**/v1/**", (route) => {
        const error = { code: "token_expired", message: "The token has expired.", request_id: "r-1" };
        return route.fulfill({ status: 401, json: { error } });
      });
      await page.getByText("Your session has ended").waitFor();
      const contents = await tabContents(page);
      expect(secrets.filter((secret) => contents.includes(secret))).toEqual([]);
      expect(await page.getByRole("dialog").count()).toBe(0);
    });
  });

  describe("untrusted text", () => {
    const markup = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`;

    test("is shown as text on every screen", async () => {
      const target = await newReceiver();
      target.respondWith((_, response) => response.writeHead(500).end(`</pre></script>${markup}\u202e\u0007`));
      const url = `${target.url}?"><script>document.title='hacked'</script>&{{7*7}}`;
      const name = `${markup} 𝕏 ${"W".repeat(20)}`.slice(0, 100);
      const { hash, projectId } = await newScenario({ name, url });
      await call("POST", "/v1/api-keys", { name: name.slice(0, 90) });
      await sendEvent(projectId, { [markup]: markup, __proto__x: "</script>", deep: { constructor: markup } });
      const page = await signedIn();
      await page.getByRole("link", { name: "<img src=x" }).first().click();
      await page.getByRole("heading", { name: "<img src=x" }).waitFor();
      await page.getByRole("link", { name: target.url }).click();
      await page.getByRole("heading", { name: "{{7*7}}" }).waitFor();
      expect(page.url()).toContain(hash);
      await page.getByRole("row", { name: "deploy.failed" }).getByRole("link").click();
      await page.getByLabel("Response to attempt 1").getByText("</pre></script>").waitFor();
      expect(await page.getByLabel("Payload").textContent()).toContain(JSON.stringify(markup));
      await page.goto(`${run.baseUrl}/console/#/projects/${projectId}/events`);
      await page.locator("summary").filter({ hasText: "deploy.failed" }).click();
      await page.getByLabel("Payload of deploy.failed").getByText("onerror").first().waitFor();
      await page.goto(`${run.baseUrl}/console/#/keys`);
      await page.getByRole("row", { name: "<img src=x" }).waitFor();
      expect(await page.title()).toBe("API keys · Deployment webhooks");
      expect(await page.locator("script").count()).toBe(1);
      expect(await page.locator("img[src=x]").count()).toBe(0);
    });

    test("does not run as a script even if it becomes markup", async () => {
      expected = [/Content Security Policy|Trusted|require.*TrustedHTML/i];
      const page = await signedIn();
      const outcome = await page.evaluate<string>(`(() => {
        try { document.body.innerHTML += ${JSON.stringify(markup)}; return "became markup"; }
        catch (error) { return error.name; }
      })()`);
      expect(outcome).toBe("TypeError");
      const ran = await page.evaluate<boolean>(`(() => {
        const script = document.createElement("script");
        try { script.textContent = "window.ran = true"; document.body.append(script); } catch {}
        return window.ran === true;
      })()`);
      expect(ran).toBe(false);
      const reached = await page.evaluate<boolean>(`fetch("http://127.0.0.1:9/").then(() => true, () => false)`);
      expect(reached).toBe(false);
      expect(browserErrors.some((text) => text.includes("connect-src"))).toBe(true);
    });
  });

  describe("keyboard", () => {
    test("creates a webhook and reads its delivery", async () => {
      const target = await newReceiver();
      const { projectId } = await newScenario();
      const page = await signedIn(`#/projects/${projectId}`);
      await page.getByRole("button", { name: "New webhook" }).waitFor();
      await tabTo(page, "New webhook");
      const ring = "getComputedStyle(document.activeElement).outlineStyle";
      expect(await page.evaluate<string>(ring)).toBe("solid");
      await page.keyboard.press("Enter");
      await page.keyboard.type(target.url);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog", { name: "signing secret" }).waitFor();
      await tabTo(page, "Copy");
      await page.keyboard.press("Enter");
      await page.getByText("Copied", { exact: true }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.getByText("No deliveries yet").waitFor();
      await eventually(async () => expect(await focused(page)).toBe(target.url));
      await tabTo(page, "More");
      await page.keyboard.press("Enter");
      await tabTo(page, "Simulate a deployment");
      await page.keyboard.press("Enter");
      await tabTo(page, "Send deployment event");
      await page.keyboard.press("Space");
      await page.getByRole("row", { name: "succeeded" }).waitFor();
      await eventually(async () => expect(await focused(page)).toBe("More"));
      const link = page.getByRole("link", { name: /^deploy.succeeded to .*, succeeded, \d/ });
      await tabTo(page, (await link.getAttribute("aria-label")) ?? "");
      await page.keyboard.press("Enter");
      await page.getByText("Attempt 1").waitFor();
      await tabTo(page, "Payload");
      expect(await page.evaluate<string>(ring)).toBe("solid");
    });

    test("a menu closes on Escape and when the focus leaves it, and one with fields stays open while they are changed", async () => {
      const { hash } = await newScenario();
      const page = await signedIn(hash);
      await page.getByText("No deliveries yet").waitFor();
      const open = () => page.locator("details.menu[open] > summary").allTextContents();
      await page.locator("summary", { hasText: "More" }).click();
      await tabTo(page, "Edit");
      await page.keyboard.press("Escape");
      expect([await open(), await focused(page)]).toEqual([[], "More"]);
      await page.locator("summary", { hasText: "More" }).click();
      await page.getByRole("heading", { level: 1 }).click();
      expect(await open()).toEqual([]);
      await page.locator("summary", { hasText: "Filter" }).click();
      await page.locator("select").first().selectOption("failed");
      await page.getByText("No deliveries match the filters").waitFor();
      expect(await open()).toEqual(["Filter: 1"]);
      await page.getByRole("heading", { level: 1 }).click();
      expect(await open()).toEqual([]);
    });

    test("arrow keys move between the languages and between the rows of a list, and do not scroll", async () => {
      const { projectId, hash } = await newScenario({ name: "Arrows" });
      await call("POST", `/v1/projects/${projectId}/webhooks`, { url: "https://example.com/2", events: eventNames });
      const page = await signedIn(`${hash}/verify`);
      await page.evaluate("addEventListener('keydown', (event) => (window.scrolls = !event.defaultPrevented))");
      const scrolls = () => page.evaluate<boolean>("window.scrolls");
      await page.getByRole("tab", { name: "Node" }).focus();
      for (const [key, name] of [
        ["ArrowRight", "Python"],
        ["End", "Shell"],
        ["ArrowRight", "Node"],
        ["ArrowLeft", "Shell"],
        ["Home", "Node"],
      ]) {
        await page.keyboard.press(key ?? "");
        expect([await focused(page), await scrolls()]).toEqual([name, false]);
        expect(await page.getByRole("tab", { name: name ?? "", selected: true }).count()).toBe(1);
      }
      await page.goto(`${run.baseUrl}/console/#/projects/${projectId}`);
      const links = page.getByRole("main").getByRole("table").getByRole("link");
      await links.nth(1).waitFor();
      const names = await links.allTextContents();
      await links.first().focus();
      await page.keyboard.press("ArrowDown");
      expect([await focused(page), await scrolls()]).toEqual([names[1], false]);
      // Below the last row there is none.
      await page.keyboard.press("ArrowDown");
      expect(await scrolls()).toBe(true);
      await page.keyboard.press("ArrowUp");
      expect(await focused(page)).toBe(names[0]);
    });
  });

  describe("layout and colors", () => {
    /** Contrast of text and background (WCAG 2), from the colors that the browser computes. */
    const contrast = `(() => {
      const channels = (name) => {
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = "var(" + name + ")";
        const numbers = getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number);
        probe.remove();
        return numbers.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      };
      const light = (name) => { const [r, g, b] = channels(name); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      return (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    })()`;

    test("every text has a contrast of at least 4.5 in the light and in the dark theme", async () => {
      const page = await signedIn();
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        const pairs = [
          ...["--ground", "--surface", "--sunken"].flatMap((ground) =>
            ["--ink", "--ink-soft", "--accent", "--good", "--bad", "--warning"].map((text) => [text, ground]),
          ),
          ["--on-accent", "--accent"],
          ["--on-accent", "--accent-strong"],
          ["--bad", "--bad-ground"],
          ["--warning", "--warning-ground"],
          ["--surface", "--bad"],
          ["--ground", "--ink"],
        ];
        const call = `${JSON.stringify(pairs)}.map(([a, b]) => [a, b, ${contrast}(a, b)])`;
        const found = await page.evaluate<[string, string, number][]>(call);
        expect([colorScheme, ...found.filter(([, , ratio]) => !(ratio >= 4.5))]).toEqual([colorScheme]);
        const ground = await page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
        const [brightness = 0] = ground.match(/\d+/g)?.map(Number) ?? [];
        expect(brightness > 128).toBe(colorScheme === "light");
      }
    });

    test("the payload keeps its height beside many attempts", async () => {
      const { hash, path } = await newScenario({ url: (await newReceiver()).url });
      const { id } = (await call("POST", `${path}/test`, {})).body.data;
      const page = await newPage();
      await page.route(/\/deliveries\/[^/?]+$/, async (route) => {
        const response = await route.fetch();
        const { data } = await response.json();
        const [attempt] = data.attempts;
        const attempts = attempt ? [1, 2, 3, 4, 5, 6].map((number) => ({ ...attempt, number })) : [];
        return route.fulfill({ response, json: { data: { ...data, attempts } } });
      });
      await signIn(page, `${hash}/deliveries/${id}`);
      await page.getByText("Attempt 6").waitFor();
      expect((await page.getByLabel("Payload").boundingBox())?.height).toBeGreaterThan(150);
    });

    test("no screen is wider than a small phone", async () => {
      const target = await newReceiver();
      target.respondWith((_, response) => response.writeHead(500).end("x".repeat(400)));
      const { hash, projectId, path } = await newScenario({
        url: `${target.url}/${"long".repeat(40)}`,
        name: "W".repeat(60),
      });
      await sendEvent(projectId, { text: "y".repeat(300) });
      await target.waitFor(1);
      // The row is written after the request.
      const id = await eventually(async () => {
        const [delivery] = (await call("GET", `${path}/deliveries`)).body.data;
        expect(delivery).toBeDefined();
        return delivery.id;
      });
      const page = await signedIn();
      await page.setViewportSize({ width: 360, height: 740 });
      const views = ["", "/deliveries", "/events", "/access", "/audit"];
      const ofProject = views.map((view) => `#/projects/${projectId}${view}`);
      const screens = ["#/projects", "#/keys", "#/audit", ...ofProject, hash, `${hash}/health`, `${hash}/verify`];
      for (const screen of [...screens, `${hash}/deliveries/${id}`]) {
        await page.goto(`${run.baseUrl}/console/${screen}`);
        await page.locator("h1").first().waitFor();
        await eventually(async () => expect(await page.locator(".skeleton").count()).toBe(0));
        const root = "document.documentElement";
        const tooWide = await page.evaluate<number>(`${root}.scrollWidth - ${root}.clientWidth`);
        expect({ screen, tooWide }).toEqual({ screen, tooWide: 0 });
      }
    });
  });
});
