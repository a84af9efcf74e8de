import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { mintToken } from "../../../bin/local/mint-token.ts";
import { tables } from "../../../functions/manifest/tables.ts";
import { handler as putMember } from "../../../functions/projects/upsert-member.ts";
import { bodySignature } from "../../../functions/receivers/signature.ts";
import { eventually } from "../../support/eventually.ts";
import { freshDataDir, type LocalRun, startLocalRun } from "../../support/local-run.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { type Response, send } from "../../support/service.ts";

/* The console as people use it: `npm start`, and a real browser. */

const executablePath = [process.env.CHROMIUM_PATH, "/usr/bin/chromium", "/usr/bin/google-chrome"].find(
  (path) => path !== undefined && existsSync(path),
);
const describeInChromium = executablePath === undefined ? describe.skip : describe;
const where = executablePath ?? "skipped: install Chromium, or say with CHROMIUM_PATH where it is";

const VIEWPORT = { width: 1280, height: 860 };
const DEADLINE_MS = 8_000;

let run: LocalRun;
let dataDir: string;
let browser: Browser;
const receivers: Receiver[] = [];

/** What the browser said that it should not have: script errors, violations of the policy, failed requests. */
const complaints: string[] = [];
/** Refusals that the test at hand brings about. Browsers write each to their console. */
let expected: RegExp[] = [];
const pages: Page[] = [];

async function newPage(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: VIEWPORT, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: run.baseUrl });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog of the browser: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${run.baseUrl}/`)) complaints.push(`a request to ${request.url()}`);
  });
  pages.push(page);
  return page;
}

const consoleOf = ({ page, baseUrl }: LocalRun): string =>
  /console +(\S+)/.exec(page)?.[1] ?? `${baseUrl}/the start page names no console`;

/** A page of somebody who is signed in, at an address behind `#`. */
async function signedIn(hash = "", { token = run.token, ...options }: BrowserContextOptions & { token?: string } = {}) {
  const page = await newPage(options);
  await page.goto(`${run.baseUrl}/console/#token=${token}`);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  if (hash !== "") await page.goto(`${run.baseUrl}/console/${hash}`);
  return page;
}

function call(method: string, path: string, body?: object, token = run.token): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return send(`${run.baseUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  receivers.push(started);
  return started;
}

/** A project of its own for a test, with a webhook. */
async function newScenario({ name = "Shop", url = "https://example.com/hook" } = {}) {
  const projectId = randomUUID();
  await putMember({ user_id: "demo-user", project_id: projectId, name });
  const events = ["deploy.started", "deploy.succeeded", "deploy.failed"];
  const { body } = await call("POST", `/v1/projects/${projectId}/webhooks`, { url, events });
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

const clipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");
const stored = (page: Page) =>
  page.evaluate<object>("({ session: { ...sessionStorage }, local: { ...localStorage }, cookie: document.cookie })");

describeInChromium(`the console in Chromium (${where})`, () => {
  beforeAll(async () => {
    dataDir = freshDataDir();
    run = await startLocalRun({ DATA_DIR: dataDir, RETRY_SCHEDULE: "1,600", LAST_USED_RESOLUTION_SECONDS: "0" });
    // What runs in this process finds the tables of that one.
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
      ],
    });
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await run?.end("SIGKILL");
    await Promise.all(receivers.map((each) => each.close()));
  });

  afterEach(async () => {
    await Promise.all(pages.splice(0).map((page) => page.context().close()));
    const unexpected = complaints.splice(0).filter((text) => !expected.some((pattern) => pattern.test(text)));
    expected = [];
    expect(unexpected).toEqual([]);
  });

  describe("signing in", () => {
    test("takes the token of the start page out of the address, and keeps it in the tab alone", async () => {
      const page = await newPage();
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

    test("takes a later token of the start page in a tab that has the console open", async () => {
      const secret = readFileSync(join(dataDir, "jwt-secret"), "utf8");
      const page = await signedIn("#/keys", { token: mintToken(secret, "demo-user", 60) });
      await page.goto(consoleOf(run));
      await page.getByRole("link", { name: "Demo project" }).waitFor();
      expect(page.url()).toBe(`${run.baseUrl}/console/`);
      expect(await stored(page)).toMatchObject({ session: { credential: run.token } });
    });

    test("takes what is pasted, blanks and Bearer included", async () => {
      const page = await newPage();
      await page.goto(`${run.baseUrl}/`);
      await page.getByLabel("JWT or API key").fill(`  Bearer ${run.token} `);
      await page.keyboard.press("Enter");
      await page.getByRole("link", { name: "Demo project" }).waitFor();
    });

    test("says why a credential is refused, with its code and the id of the request", async () => {
      expected = [/status of 401/];
      const page = await newPage();
      await page.goto(`${run.baseUrl}/console/`);
      await page.getByLabel("JWT or API key").fill(`svc_${"0".repeat(64)}`);
      await page.getByRole("button", { name: "Sign in" }).click();
      const alert = page.getByRole("alert");
      await alert.getByText("invalid_api_key").waitFor();
      expect(await alert.textContent()).toMatch(/request [0-9a-f-]{36}/);
      expect(await stored(page)).toMatchObject({ session: {} });
    });

    test("is asked for again, with the reason, when the token has run out", async () => {
      expected = [/status of 401/];
      const secret = readFileSync(join(dataDir, "jwt-secret"), "utf8");
      const { projectId, hash } = await newScenario();
      const page = await signedIn(hash, { token: mintToken(secret, "demo-user", 2) });
      await page.getByText("Your session has ended").waitFor();
      expect(await page.getByRole("alert").textContent()).toContain("token_expired");
      expect(await stored(page)).toMatchObject({ session: {} });
      await page.getByLabel("JWT or API key").fill(run.token);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "https://example.com/hook" }).waitFor();
      expect(page.url()).toContain(projectId);
    });
  });

  describe("API keys", () => {
    test("a new key is shown once, can be copied, works, and is revoked at once", async () => {
      const page = await signedIn("#/keys");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("story");
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog", { name: "Your new API key" });
      const key = await dialog.getByLabel("story").inputValue();
      expect(key).toMatch(/^svc_[0-9a-f]{64}$/);

      await page.keyboard.press("Escape");
      await dialog.getByText("It is not copied yet").waitFor();
      await dialog.getByRole("button", { name: "Copy" }).click();
      expect(await clipboard(page)).toBe(key);
      await dialog.getByRole("button", { name: "Done" }).click();
      await dialog.waitFor({ state: "hidden" });
      expect(await page.content()).not.toContain(key);
      expect(JSON.stringify(await stored(page))).not.toContain(key);

      const row = page.getByRole("row", { name: "story" });
      await row.getByText(`${key.slice(0, 12)}…`).waitFor();
      await row.getByText("never").waitFor();
      expect((await call("GET", "/v1/projects", undefined, key)).status).toBe(200);

      await row.getByRole("button", { name: "Revoke story" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
      await page.getByText("The key “story” is revoked.").waitFor();
      await row.waitFor({ state: "detached" });
      expect((await call("GET", "/v1/projects", undefined, key)).status).toBe(401);
    });

    test("a key's session cannot make keys, and is told why", async () => {
      const { key } = (await call("POST", "/v1/api-keys", { name: "ci" })).body.data;
      const page = await signedIn("#/keys", { token: key });
      await page.getByText("A key cannot make keys").waitFor();
      expect(await page.getByRole("button", { name: "New key" }).count()).toBe(0);

      await page.getByRole("button", { name: "Revoke ci" }).click();
      await page.getByText("you will be signed out").waitFor();
      await page.getByRole("button", { name: "Revoke key" }).click();
      await page.getByLabel("JWT or API key").waitFor();
    });
  });

  describe("webhooks and deliveries", () => {
    test("a webhook is made, its code filled in, and an event seen to arrive live and verified", async () => {
      const target = await receiver();
      const { projectId } = await newScenario({ name: "Story" });
      const page = await signedIn(`#/projects/${projectId}`);
      await page.getByRole("button", { name: "New webhook" }).click();
      await page.getByLabel("URL").fill("http://example.com/plain");
      await page.getByRole("button", { name: "Create webhook" }).click();
      expected = [/status of 400/];
      await page.getByRole("alert").getByText("validation_error").waitFor();
      expect(await page.getByLabel("URL").getAttribute("aria-invalid")).toBe("true");
      await page.getByLabel("URL").fill(target.url);
      await page.getByRole("button", { name: "Create webhook" }).click();
      const secret = await page.getByRole("textbox", { name: "Secret" }).inputValue();
      expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
      await page.getByRole("button", { name: "Copy" }).click();
      await page.getByRole("link", { name: "filled in" }).click();

      const code = page.getByRole("tabpanel");
      await code.getByText(secret).waitFor();
      for (const language of ["Python", "Shell"]) {
        await page.keyboard.press("Tab");
        await page.getByRole("tab", { name: language }).click();
        expect(await code.textContent()).toContain(secret);
      }
      expect(JSON.stringify(await stored(page))).not.toContain(secret);

      await page.getByRole("link", { name: "Deliveries" }).click();
      await page.getByText("No deliveries yet").waitFor();
      await page.getByLabel("Play the pipeline").selectOption("deploy.failed");
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

    test("a failing receiver is explained attempt by attempt, and a redelivery mends it", async () => {
      const target = await receiver();
      target.answerWith((_, response) => response.writeHead(503).end("down for repairs"));
      const { hash, projectId } = await newScenario({ url: target.url });
      const page = await signedIn(hash);
      await sendEvent(projectId, {});
      await page.getByRole("row", { name: "pending" }).getByRole("link").click();
      const detail = page.getByRole("region", { name: "Delivery", exact: true });
      await detail.getByText("Attempt 2").waitFor();
      expect(await detail.getByText("http_status").count()).toBeGreaterThan(0);
      expect(await detail.getByText(/The receiver answered 503/).count()).toBeGreaterThan(0);
      await detail.getByLabel("Answer to attempt 1").getByText("down for repairs").waitFor();
      await detail.getByText(/due in \d+ min/).waitFor();

      target.answerWith(200);
      await detail.getByRole("button", { name: "Redeliver" }).click();
      await detail.getByText("succeeded", { exact: true }).waitFor();
      await detail.getByText("redelivered").waitFor();
      await page.getByRole("row", { name: "succeeded" }).waitFor();
    });

    test("numbers of the payload are shown as they were sent", async () => {
      const target = await receiver();
      const { hash, projectId } = await newScenario({ url: target.url });
      await sendEvent(projectId, { build: "N" }, (text) => text.replace('"N"', "9007199254740993"));
      await target.waitFor(1);
      const page = await signedIn(hash);
      await page.getByRole("row", { name: "deploy.failed" }).getByRole("link").click();
      await page.getByLabel("Payload").getByText('"build": 9007199254740993').waitFor();
    });

    test("a secret is rotated with an overlap that counts down, a reload included", async () => {
      const { hash, webhook } = await newScenario();
      const page = await signedIn(hash);
      await page.getByRole("button", { name: "Rotate secret" }).click();
      await page.getByLabel("1 hour").check();
      await page.getByRole("button", { name: "Rotate", exact: true }).click();
      const rotated = await page.getByRole("textbox", { name: "Secret" }).inputValue();
      expect(rotated).toMatch(/^whsec_/);
      expect(rotated).not.toBe(webhook.secret);
      await page.getByRole("button", { name: "Copy" }).click();
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByText(/The old one ends in 59:\d\d/).waitFor();
      await page.reload();
      await page.getByText(/The old one ends in 59:\d\d/).waitFor();
      expect(JSON.stringify(await stored(page))).not.toContain("whsec_");
    });

    test("a webhook is disabled, edited, enabled, recovered, tested and deleted", async () => {
      const target = await receiver();
      const { hash, path, projectId } = await newScenario({ url: target.url });
      const page = await signedIn(hash);
      await page.getByRole("button", { name: "Disable" }).click();
      await page.getByText("Somebody turned it off.").waitFor();
      await sendEvent(projectId, {});
      await page.getByRole("row", { name: "held" }).waitFor();
      expect(await page.getByRole("button", { name: "Recover" }).count()).toBe(0);

      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByRole("dialog").getByLabel("deploy.started").uncheck();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The webhook is changed.").waitFor();
      expect((await call("GET", path)).body.data.events).toEqual(["deploy.succeeded", "deploy.failed"]);

      await page.getByRole("button", { name: "Enable" }).click();
      await page.getByRole("button", { name: "Recover" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Recover" }).click();
      await page.getByText("1 on their way once more.").waitFor();
      await page.getByRole("row", { name: "succeeded" }).waitFor();

      await page.getByRole("button", { name: "Send test" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Send test" }).click();
      const detail = page.getByRole("region", { name: "Delivery", exact: true });
      await detail.getByText("succeeded", { exact: true }).waitFor();
      expect(await detail.getByText("test", { exact: true }).count()).toBeGreaterThan(0);

      await page.getByLabel("Status").selectOption("failed");
      await page.getByText("No delivery is failed").waitFor();

      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("button", { name: "Delete webhook" }).click();
      await page.getByText("No webhooks yet").waitFor();
      expected = [/status of 404/];
      expect((await call("GET", path)).status).toBe(404);
    });

    test("more deliveries than a page holds are loaded below, and stay while new ones come", async () => {
      const target = await receiver();
      const { hash, projectId } = await newScenario({ url: target.url });
      await Promise.all(Array.from({ length: 23 }, () => sendEvent(projectId, {})));
      await target.waitFor(23);
      const page = await signedIn(hash);
      const rows = page.locator("tbody tr");
      await page.getByRole("button", { name: "Load more" }).waitFor();
      expect(await rows.count()).toBe(20);
      await page.getByRole("button", { name: "Load more" }).click();
      await rows.nth(22).waitFor();
      await page.getByRole("button", { name: "Load more" }).waitFor({ state: "detached" });
      await sendEvent(projectId, {});
      await rows.nth(23).waitFor();
    });

    test("a viewer sees everything and no button that would be refused", async () => {
      const { hash, projectId } = await newScenario();
      await putMember({ user_id: "viewer", project_id: projectId, name: "Shop", role: "viewer" });
      const secret = readFileSync(join(dataDir, "jwt-secret"), "utf8");
      const page = await signedIn(`#/projects/${projectId}`, { token: mintToken(secret, "viewer") });
      await page.getByText("you may look, not change").waitFor();
      await page.getByRole("link", { name: "https://example.com/hook" }).click();
      await page.getByText("No deliveries yet").waitFor();
      const buttons = await page.getByRole("main").getByRole("button").allTextContents();
      expect(buttons).toEqual([]);
      expect(page.url()).toContain(hash);
    });
  });

  describe("what others wrote", () => {
    const markup = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`;

    test("is shown as text, wherever it stands", async () => {
      const target = await receiver();
      target.answerWith((_, response) => response.writeHead(500).end(`</pre></script>${markup}\u202e\u0007`));
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
      await page.getByLabel("Answer to attempt 1").getByText("</pre></script>").waitFor();
      expect(await page.getByLabel("Payload").textContent()).toContain(JSON.stringify(markup));
      await page.goto(`${run.baseUrl}/console/#/keys`);
      await page.getByRole("row", { name: "<img src=x" }).waitFor();
      expect(await page.title()).toBe("Deployment webhooks");
      expect(await page.locator("script").count()).toBe(1);
      expect(await page.locator("img[src=x]").count()).toBe(0);
    });

    test("would not run even if it became markup", async () => {
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
      expect(complaints.some((text) => text.includes("connect-src"))).toBe(true);
    });

    test("in an address leads nowhere", async () => {
      const page = await signedIn("#/projects/..%2F..%2Fapi-keys");
      await page.getByText("There is no such page.").waitFor();
    });
  });

  describe("when things go wrong", () => {
    test("a 429 is waited for as long as it says, and then the answer is there", async () => {
      expected = [/status of 429/];
      const page = await signedIn();
      let refused = 0;
      await page.route("**/v1/api-keys", async (route) => {
        refused += 1;
        if (refused > 1) return route.continue();
        const error = { code: "rate_limited", message: "Too many requests. Wait and try again.", request_id: "r-1" };
        return route.fulfill({ status: 429, headers: { "Retry-After": "1" }, json: { error } });
      });
      await page.getByRole("link", { name: "API keys" }).click();
      await page.getByText("Trying again in 1 s.").waitFor();
      await page.getByText("For CI jobs").waitFor();
      await page.locator(".waiting").waitFor({ state: "detached" });
      expect(refused).toBe(2);
      expect(await page.getByRole("alert").count()).toBe(0);
    });

    test("a refusal shows message, code and request id, and what was loaded stays", async () => {
      expected = [/status of 500/];
      const { hash, projectId } = await newScenario();
      const page = await signedIn(hash);
      await sendEvent(projectId, {});
      await page.locator("tbody tr").first().waitFor();
      const error = { code: "internal_error", message: "Something went wrong on our side.", request_id: "r-42" };
      await page.route("**/deliveries?*", (route) => route.fulfill({ status: 500, json: { error } }));
      const alert = page.getByRole("alert");
      await alert.getByText("Something went wrong on our side.").waitFor();
      expect(await alert.textContent()).toContain("internal_error · request r-42");
      await page.getByText("not live").waitFor();
      expect(await page.locator("tbody tr").count()).toBe(1);
      await page.unroute("**/deliveries?*");
      await alert.waitFor({ state: "detached" });
    });

    test("offline is told, and over by itself", async () => {
      expected = [/ERR_INTERNET_DISCONNECTED|Failed to fetch/];
      const { hash } = await newScenario();
      const page = await signedIn(hash);
      await page.getByText("No deliveries yet").waitFor();
      await page.context().setOffline(true);
      await page.getByText("This device is offline. What you see is from before").waitFor();
      await page.getByText("not live").waitFor();
      await page.context().setOffline(false);
      await page.getByText("live", { exact: true }).waitFor();
      await page.getByText("This device is offline").first().waitFor({ state: "detached" });
    });

    test("a webhook that is not there is told as such", async () => {
      expected = [/status of 404/];
      const { projectId } = await newScenario();
      const page = await signedIn(`#/projects/${projectId}/webhooks/${randomUUID()}`);
      await page.getByRole("alert").getByText("not_found").waitFor();
    });

    test("nothing is asked while nobody looks", async () => {
      const { hash } = await newScenario();
      const page = await signedIn(hash);
      await page.getByText("No deliveries yet").waitFor();
      await page.evaluate(`Object.defineProperty(document, "hidden", { get: () => true, configurable: true })`);
      // What was under way may end.
      await page.waitForTimeout(300);
      let asked = 0;
      page.on("request", () => {
        asked += 1;
      });
      await page.waitForTimeout(5_500);
      expect(asked).toBe(0);
      await page.evaluate(`delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`);
      await page.waitForRequest(/deliveries/);
    }, 30_000);
  });

  describe("by keyboard alone", () => {
    const focused = (page: Page) =>
      page.evaluate<string>("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent");

    /** Presses Tab until something has the focus. */
    async function tabTo(page: Page, name: string): Promise<void> {
      for (let presses = 0; presses < 40; presses++) {
        await page.keyboard.press("Tab");
        if ((await focused(page)) === name) return;
      }
      throw new Error(`Tab never comes to ${name}`);
    }

    test("a webhook is made and its delivery read", async () => {
      const target = await receiver();
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
      await eventually(async () => expect(await focused(page)).toBe("New webhook"));

      await page.getByRole("link", { name: target.url }).waitFor();
      await tabTo(page, target.url);
      await page.keyboard.press("Enter");
      await page.getByText("No deliveries yet").waitFor();
      await eventually(async () => expect(await focused(page)).toBe(target.url));
      await tabTo(page, "Send deployment event");
      await page.keyboard.press("Space");
      await page.getByRole("row", { name: "succeeded" }).waitFor();
      await tabTo(page, "deploy.succeeded");
      await page.keyboard.press("Enter");
      await page.getByText("Attempt 1").waitFor();
      await tabTo(page, "Payload");
      expect(await page.evaluate<string>(ring)).toBe("solid");
    });

    test("Escape closes a window and gives the focus back", async () => {
      const { hash } = await newScenario();
      const page = await signedIn(hash);
      await page.getByRole("button", { name: "Edit" }).waitFor();
      for (const name of ["Send test", "Edit", "Rotate secret", "Delete"]) {
        await tabTo(page, name);
        await page.keyboard.press("Enter");
        await page.getByRole("dialog").waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
        await eventually(async () => expect(await focused(page)).toBe(name));
      }
    });
  });

  describe("looks", () => {
    /** Contrast of text and ground (WCAG 2), as the browser computes the colours. */
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

    test.each(["light", "dark"] as const)("%s has contrast enough for every text", async (colorScheme) => {
      const page = await signedIn("", { colorScheme });
      const pairs = [
        ...["--ground", "--surface", "--sunken"].flatMap((ground) =>
          ["--ink", "--ink-soft", "--accent", "--good", "--bad", "--wait"].map((text) => [text, ground]),
        ),
        ["--on-accent", "--accent"],
        ["--on-accent", "--accent-strong"],
        ["--bad", "--bad-ground"],
        ["--wait", "--wait-ground"],
        ["--surface", "--bad"],
        ["--ground", "--ink"],
      ];
      const call = `${JSON.stringify(pairs)}.map(([a, b]) => [a, b, ${contrast}(a, b)])`;
      const found = await page.evaluate<[string, string, number][]>(call);
      expect(found.filter(([, , ratio]) => !(ratio >= 4.5))).toEqual([]);
      const ground = await page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
      const [brightness = 0] = ground.match(/\d+/g)?.map(Number) ?? [];
      expect(brightness > 128).toBe(colorScheme === "light");
    });

    test("nothing is wider than a small phone", async () => {
      const target = await receiver();
      target.answerWith((_, response) => response.writeHead(500).end("x".repeat(400)));
      const { hash, projectId, path } = await newScenario({
        url: `${target.url}/${"long".repeat(40)}`,
        name: "W".repeat(60),
      });
      await sendEvent(projectId, { text: "y".repeat(300) });
      await target.waitFor(1);
      const [{ id }] = (await call("GET", `${path}/deliveries`)).body.data;
      const page = await signedIn("", { viewport: { width: 360, height: 740 } });
      const screens = ["#/projects", "#/keys", `#/projects/${projectId}`, hash, `${hash}/verify`];
      for (const screen of [...screens, `${hash}/deliveries/${id}`]) {
        await page.goto(`${run.baseUrl}/console/${screen}`);
        await page.locator("h1").first().waitFor();
        await eventually(async () => expect(await page.locator(".waiting").count()).toBe(0));
        const root = "document.documentElement";
        expect(await page.evaluate<number>(`${root}.scrollWidth - ${root}.clientWidth`)).toBe(0);
      }
    });
  });
});
