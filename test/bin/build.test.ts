import { spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type http from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import type * as esbuild from "esbuild";
import { budgetOf, checkBudgets } from "../../bin/build/budgets.ts";
import { checkStubs } from "../../bin/build/bundle-stubs.ts";
import { smokeLoad } from "../../bin/build/smoke-load.ts";
import { build } from "../../bin/build.ts";
import { type EventSources, startEventSources } from "../../bin/local/event-sources.ts";
import { createGateway } from "../../bin/local/gateway.ts";
import type { LoadHandler } from "../../bin/local/lambda.ts";
import { mintToken } from "../../bin/local/mint-token.ts";
import { endpoints } from "../../functions/manifest/endpoints.ts";
import { workers } from "../../functions/manifest/workers.ts";
import { sqs } from "../../functions/platform/aws.ts";
import { bundleFolder } from "../../lib/names.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { freshResources } from "../support/resources.ts";
import { jwtSecret, send } from "../support/service.ts";

/* What `cdk deploy` ships is the bundles, so here they run: the same gateway, engines and queues, other code. */

const files = [...endpoints, ...workers].map((row) => row.file);
const projectRoot = join(import.meta.dirname, "../..");

let outdir: string;
let metafile: esbuild.Metafile;
const pathOf = (file: string, folder = outdir) => join(folder, bundleFolder(file), "index.js");
const fromBundles: LoadHandler = async (file) => createRequire(import.meta.url)(pathOf(file)).handler;

beforeAll(async () => {
  outdir = mkdtempSync(join(tmpdir(), "bundles-"));
  [metafile] = await Promise.all([build({ outdir }), freshResources()]);
});
afterAll(() => rmSync(outdir, { recursive: true, force: true }));

describe("the size of a bundle", () => {
  const bytesOf = (file: string) => readFileSync(pathOf(file)).length;

  test("is 260 KB at most, and 330 KB for the sender", () => {
    const kb = (file: string) => bytesOf(file) / 1024;
    for (const file of files) expect(kb(file)).toBeLessThanOrEqual(file === "attempts/send" ? 330 : 260);
    expect([budgetOf("auth/authorizer"), budgetOf("api-keys/list"), budgetOf("attempts/send")]).toEqual([
      260, 260, 330,
    ]);
  });

  test("over its budget is an error that names the bundle, both sizes and what weighs most", () => {
    const outputs = new Map(
      Object.entries(metafile.outputs).map(([path, output]) => [path.split("/").at(-2) ?? "", output]),
    );
    const bytes = bytesOf("auth/authorizer");
    const budget = Math.ceil(bytes / 1024);
    expect(() => checkBudgets(outputs, () => 1024)).not.toThrow();
    const lower = (file: string) => (file === "auth-authorizer" ? budget - 1 : 1024);
    const line = `^The bundle of auth-authorizer has ${(bytes / 1024).toFixed(1)} KB, its budget is ${budget - 1} KB\\. Most of it: `;
    expect(() => checkBudgets(outputs, lower)).toThrow(new RegExp(`${line}@smithy/core \\d+\\.\\d KB, [^\\n]+ KB\\.$`));
    const none = () => 0;
    expect(() => checkBudgets(outputs, none)).toThrow(new RegExp(`(The bundle of [^\\n]+\\n){${files.length - 1}}`));
  });

  test("is guarded where something is left out: what nobody imports any more is named", () => {
    expect(() => checkStubs(metafile)).not.toThrow();
    const inputs = { ...metafile.inputs };
    for (const path of Object.keys(inputs)) if (path.includes("node_modules/semver/")) delete inputs[path];
    expect(() => checkStubs({ ...metafile, inputs })).toThrow("that no bundle imports: semver/index.js");
  });
});

describe("a bundle", () => {
  const inFreshProcess = (script: string, { env = {}, argv = [] as string[] } = {}) =>
    spawnSync(process.execPath, ["--input-type=commonjs", "-e", script, "--", ...argv], { env, encoding: "utf8" });

  test.each(files)(
    "of %s loads without any setting, exports a handler and leaves the slow parts of Node alone",
    (file) => {
      const script = `
      const { handler } = require(process.argv[1]);
      console.log(typeof handler, process.moduleLoadList.filter((name) => /undici|http2|webstreams/.test(name)).join());`;
      const { stdout, stderr } = inFreshProcess(script, { argv: [pathOf(file)] });
      expect({ stdout, stderr }).toEqual({ stdout: "function \n", stderr: "" });
    },
  );

  test("leaves them alone while it serves its first request, too", () => {
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
    // What a function logs goes to the standard output.
    const { stderr } = inFreshProcess(script, { argv: [pathOf("auth/authorizer")], env: process.env });
    expect(stderr).toBe("invalid_api_key \n");
  });

  test.each<[string, string, RegExp]>([
    ["that does not load", 'throw new Error("TABLE is not set");', /^The bundle of x does not load: TABLE is not set$/],
    ["without a handler", "exports.handle = () => {};", /^The bundle of x exports no handler\.$/],
    ["that says something", 'console.log("hello"); exports.handler = () => {};', /^hello$/],
    ["that ends the process", "process.exit(3);", /^The bundles do not load: exit code 3$/],
    [
      "that loads what no function needs",
      'require("node:http2"); exports.handler = () => {};',
      /^The bundle of x loads http2, which slows every cold start down\.$/,
    ],
  ])("%s fails the build", (_, source, message) => {
    const path = pathOf("x", join(outdir, "broken"));
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, source);
    expect(() => smokeLoad([["auth/authorizer", pathOf("auth/authorizer")]])).not.toThrow();
    expect(() => smokeLoad([["x", path]])).toThrow(message);
  });
});

test("the same sources make the same bundles, from another folder and into another one", () => {
  const other = mkdtempSync(join(tmpdir(), "bundles-again-"));
  const script = `import(${JSON.stringify(join(projectRoot, "bin/build.ts"))}).then(({ build }) => build({ outdir: process.argv[1] }))`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", script, "--", other], { cwd: "/", encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const hashes = (folder: string) =>
    files.map((file) =>
      createHash("sha256")
        .update(readFileSync(pathOf(file, folder)))
        .digest("hex"),
    );
  expect(hashes(other)).toEqual(hashes(outdir));
  rmSync(other, { recursive: true });
});

describe("the bundles", () => {
  let server: http.Server;
  let eventSources: EventSources;
  let receiver: Receiver;
  let baseUrl: string;
  beforeAll(async () => {
    process.env.JWT_SECRET = jwtSecret;
    process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8";
    server = await createGateway(fromBundles);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    eventSources = await startEventSources(sqs(), fromBundles, 1);
    receiver = await startReceiver();
  });
  afterAll(async () => {
    await eventSources.stop();
    server.closeAllConnections();
    server.close();
    await receiver.close();
  });

  test("serve the whole story: key, webhook, event, delivery, revocation", async () => {
    const userId = randomUUID();
    const projectId = randomUUID();
    const putMember = await fromBundles("projects/upsert-member");
    await putMember({ user_id: userId, project_id: projectId, name: "Bundled" }, {} as never);
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
