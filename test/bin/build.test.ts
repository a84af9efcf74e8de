import { spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { jest } from "@jest/globals";
import type { Context } from "aws-lambda";
import { budgetOf, checkBudgets } from "../../bin/build/budgets.ts";
import { bundleFunctions } from "../../bin/build/bundle-functions.ts";
import { smokeLoad } from "../../bin/build/smoke-load.ts";
import { mintToken } from "../../bin/command/mint-token.ts";
import { build } from "../../bin/commands/build.ts";
import { type EventSources, startEventSources } from "../../bin/emulator/event-sources.ts";
import { createGateway } from "../../bin/emulator/gateway.ts";
import type { LoadHandler } from "../../bin/emulator/lambda.ts";
import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { listening } from "../support/listening.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { freshResources } from "../support/resources.ts";
import { jwtSecret, send } from "../support/service.ts";

/* `cdk deploy` ships the bundles, so this file runs them behind the local gateway, engines and queues. */

const files = functionRows.map((row) => row.id);
const rowsOf = (...ids: string[]) => functionRows.filter(({ id }) => ids.includes(id));
/** They use every stub. */
const someRows = rowsOf("auth-authorizer", "attempts-send", "serveMcp");
const projectRoot = join(import.meta.dirname, "../..");

let outdir: string;
const pathOf = (id: string, folder = outdir) => join(folder, id, "index.js");
const fromBundles: LoadHandler = async (file) => createRequire(import.meta.url)(pathOf(file)).handler;

beforeAll(async () => {
  outdir = mkdtempSync(join(tmpdir(), "bundles-"));
  await Promise.all([bundleFunctions({ outdir }), freshResources()]);
});
afterAll(() => rmSync(outdir, { recursive: true, force: true }));

test("a bundle may fill its budget of KB of 1,024 bytes; each one over it is a line with both sizes", () => {
  const budgets = ["auth-authorizer", "listApiKeys", "redeliver", "attempts-send", "attempts-send-slow", "serveMcp"];
  expect(budgets.map(budgetOf)).toEqual([277, 262, 285, 292, 303, 362]);
  const outputs = (bytes: number) => new Map(["x", "y", "auth-authorizer"].map((id) => [id, { bytes }]));
  expect(() => checkBudgets(outputs(262 * 1024))).not.toThrow();
  expect(() => checkBudgets(outputs(262 * 1024 + 1))).toThrow(
    "The bundle of x has 262.0 KB, but its budget is 262 KB.\n" +
      "The bundle of y has 262.0 KB, but its budget is 262 KB.\nmeta.json beside the bundles lists their parts " +
      "(https://esbuild.github.io/analyze/). Leave out what is not needed, or raise the budget in bin/build/budgets.ts.",
  );
});

describe("the build fails", () => {
  const buildWith = (options: object) =>
    bundleFunctions({ outdir: join(outdir, "checked"), rows: someRows, ...options });

  test("when a row names a file that does not exist", async () => {
    await expect(buildWith({ rows: [{ id: "new", file: "no/such" }, ...someRows] })).rejects.toThrow(
      /name files .*: functions\/no\/such\.ts$/,
    );
  });

  test("when a bundle is over its budget", async () => {
    const budgetKbOf = (id: string) => (id === "attempts-send" ? 1 : 1024);
    await expect(buildWith({ budgetKbOf })).rejects.toThrow(/^The bundle of attempts-send has .+ its budget is 1 KB/);
  });

  test("when a stub replaces nothing", async () => {
    await expect(buildWith({ rows: rowsOf("listApiKeys") })).rejects.toThrow(
      /modules that no bundle imports: .*semver\/index\.js/,
    );
  });

  test("when the bundles do not load in time", async () => {
    await expect(buildWith({ loadLimitMs: 1 })).rejects.toThrow(
      /ETIMEDOUT\. .* a bundle keeps the process running for 0.001 s\.$/,
    );
  });

  test("when one of the bundles has no handler: the command prints it and exits with 1", async () => {
    const print = jest.spyOn(console, "error").mockImplementation(() => {});
    const options = {
      outdir: join(outdir, "checked"),
      rows: [{ id: "env", file: "foundation/platform/env" }, ...someRows],
    };
    expect([await build(options), process.exitCode]).toEqual([false, 1]);
    process.exitCode = undefined;
    expect(print).toHaveBeenCalledWith("The bundle of env exports no handler.");
    print.mockRestore();
  });
});

describe("a bundle", () => {
  // That each loads without any environment variable, exports a handler and loads no slow part of Node is checked by the build.
  test("does not load the slow parts of Node for its first request, or by a dynamic import later", () => {
    const key = `Bearer svc_${"0".repeat(64)}`;
    const event = {
      methodArn: "arn:aws:execute-api:eu-central-1:1:api/prod/GET/v1/projects",
      multiValueHeaders: { Authorization: [key] },
      requestContext: { requestId: "1" },
    };
    const script = `
      require(process.argv[1]).handler(${JSON.stringify(event)}).then(({ context }) => console.error(
        context.errorCode,
        process.moduleLoadList.filter((name) => /undici|http2|webstreams/.test(name)).join(),
      ));`;
    // The log of a function goes to standard output.
    const args = ["--input-type=commonjs", "-e", script, "--", pathOf("auth-authorizer")];
    const { stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(stderr).toBe("invalid_api_key \n");
    expect(files.filter((each) => /\bimport\(/.test(readFileSync(pathOf(each), "utf8")))).toEqual([]);
  });

  test("of POST /mcp serves both generations of the protocol without the parts that stubs replace", async () => {
    const handler = await fromBundles("serveMcp");
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const send = (params: object, headers: object) => {
      const context = { getRemainingTimeInMillis: () => 28_000 } as Context;
      const given = { accept: "application/json, text/event-stream", "content-type": "application/json", ...headers };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params });
      const authorizer = { userId: "ann", authType: "jwt" };
      return handler({ headers: given, body, requestContext: { requestId: "1", authorizer, identity: {} } }, context);
    };
    for (const [params, headers] of [
      [{}, {}],
      [{ _meta: meta }, { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" }],
    ] as const) {
      const { statusCode, body } = (await send(params, headers)) as { statusCode: number; body: string };
      expect(statusCode).toBe(200);
      expect(JSON.parse(body).result.tools.length).toBeGreaterThan(10);
    }
  });

  test.each<[string, string, RegExp]>([
    ["that does not load", 'throw new Error("TABLE is not set");', /^The bundle of x does not load: TABLE is not set$/],
    ["without a handler", "exports.handle = () => {};", /^The bundle of x exports no handler\.$/],
    [
      "that needs a variable",
      "exports.handler = process.env.PATH && (() => {});",
      /^The bundle of x exports no handler/,
    ],
    ["that prints", 'console.log("hello"); exports.handler = () => {};', /^hello$/],
    ["that ends the process", "process.exit(3);", /^The bundles do not load: exit code 3\.$/],
    [
      "that loads a slow part of Node",
      'require("node:http2"); exports.handler = () => {};',
      /^The bundle of x loads http2, which slows down every cold start\.$/,
    ],
  ])("%s fails the build", (_, source, message) => {
    const path = pathOf("x", join(outdir, "broken"));
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, source);
    expect(() => smokeLoad([["x", path]])).toThrow(message);
  });
});

test("the same sources give the same bundles, in any working directory and output folder", () => {
  const other = mkdtempSync(join(tmpdir(), "bundles-again-"));
  const script = `import(${JSON.stringify(join(projectRoot, "bin/build/bundle-functions.ts"))}).then(({ bundleFunctions }) => bundleFunctions({ outdir: process.argv[1], rows: ${JSON.stringify(someRows)} }))`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", script, "--", other], { cwd: "/", encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const hashes = (folder: string) =>
    someRows.map(({ id }) =>
      createHash("sha256")
        .update(readFileSync(pathOf(id, folder)))
        .digest("hex"),
    );
  expect(hashes(other)).toEqual(hashes(outdir));
  rmSync(other, { recursive: true });
});

describe("trace", () => {
  const trace = (input: string, id: string) =>
    spawnSync(process.execPath, ["bin/run.cjs", "trace", "--function", id, "--maps", join(outdir, "maps")], {
      cwd: projectRoot,
      encoding: "utf8",
      input,
    });

  test("prints the stack in a log line of a deployed function with files and lines of the sources", () => {
    const id = "projects-upsert-member";
    const member = { user_id: "bob", project_id: randomUUID(), name: "Shop" };
    const script = `require(process.argv[1]).handler(${JSON.stringify(member)})
      .catch(({ stack }) => console.log(JSON.stringify({ level: "ERROR", error: { stack } })))`;
    const logLine = spawnSync(process.execPath, ["-e", script, "--", pathOf(id)], { env: {}, encoding: "utf8" });
    expect(logLine.stdout).toMatch(/\\n {4}at \S+ \(\S+\/projects-upsert-member\/index\.js:\d+:\d+\)/);
    // The folder of a bundle is deployed as it is.
    expect(readdirSync(join(outdir, "projects-upsert-member"))).toEqual(["index.js"]);
    expect(JSON.parse(readFileSync(join(outdir, "package.json"), "utf8"))).toEqual({ type: "commonjs" });
    const lineOf = (path: string, text: string) =>
      readFileSync(join(projectRoot, path), "utf8").split(text)[0]?.split("\n").length;
    const { status, stdout } = trace(logLine.stdout, id);
    expect(stdout).not.toContain("../");
    const env = "functions/foundation/platform/env.ts";
    const places = [...stdout.matchAll(/^ {4}at .*(functions\/foundation\/platform\/env\.ts:\d+)/gm)].map(
      ([, place]) => place,
    );
    expect({ status, places }).toEqual({
      status: 0,
      places: [
        `${env}:${lineOf(env, "throw new SettingError(`")}`,
        `${env}:${lineOf(env, "required(tables[table].env)")}`,
      ],
    });
  });

  test("says what to do without a source map, and without a stack", () => {
    expect(trace("at x (index.js:1:2)", "no-such")).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /no-such\.map does not exist\. Check out the deployed commit and run npm run build/,
      ),
    });
    expect(trace("at x (other.js:1:2)", "auth-authorizer")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(
        /^Standard input has no index\.js:<line>:<column>\.\nUsage: npm run --silent trace/,
      ),
    });
  });
});

describe("the bundles", () => {
  let eventSources: EventSources;
  let receiver: Receiver;
  let baseUrl: string;
  beforeAll(async () => {
    process.env.JWT_SECRET = jwtSecret;
    process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8";
    baseUrl = await listening(await createGateway(fromBundles));
    eventSources = await startEventSources(sqs(), fromBundles, 1);
    receiver = await startReceiver();
  });
  afterAll(() => eventSources.stop());

  test("serve a key, a webhook, an event, its delivery and the revocation", async () => {
    const userId = randomUUID();
    const projectId = randomUUID();
    const upsertMember = await fromBundles("projects-upsert-member");
    await upsertMember({ user_id: userId, project_id: projectId, name: "Bundled" }, {} as never);
    const call = (credential: string, method: string, path: string, body?: object) =>
      send(`${baseUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
    const token = mintToken(jwtSecret, userId);

    const key = (await call(token, "POST", "/v1/api-keys", { name: "ci" })).body.data;
    expect((await call(key.key, "GET", "/v1/projects")).body.data).toHaveLength(1);
    const path = `/v1/projects/${projectId}/webhooks`;
    const webhook = await call(key.key, "POST", path, { url: receiver.url, events: ["deploy.failed"] });
    expect(webhook.status).toBe(201);
    expect((await call(key.key, "POST", path, { url: "https://10.0.0.1/", events: [] })).status).toBe(400);

    const event = {
      event: "deploy.failed",
      project_id: projectId,
      deployment_id: randomUUID(),
      data: { step: "build" },
    };
    const MessageBody = JSON.stringify({ ...event, timestamp: new Date().toISOString() });
    await sqs().send(new SendMessageCommand({ QueueUrl: process.env.EVENTS_QUEUE_URL, MessageBody }));
    const [received] = await receiver.waitFor(1);
    expect(JSON.parse(received?.body ?? "")).toMatchObject(event);

    expect((await call(key.key, "DELETE", `${path}/${webhook.body.data.id}`)).status).toBe(204);
    expect((await call(token, "DELETE", `/v1/api-keys/${key.id}`)).status).toBe(204);
    expect((await call(key.key, "GET", "/v1/projects")).body.error.code).toBe("invalid_api_key");
  });
});
