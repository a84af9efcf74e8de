import { execFile, execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { stackName } from "../../lib/names.ts";
import { stages } from "../../lib/stages.ts";
import { AUDIENCE, type CiSystem, startCiSystem } from "../support/ci-system.ts";
import { eventOf, givenEvent } from "../support/deliveries.ts";
import { listening } from "../support/listening.ts";
import { userEnvironment } from "../support/npm-pack.ts";
import { needs } from "../support/optional-program.ts";
import { type TestService, useService } from "../support/service.ts";
import { type ProxiedRequest, startTamperingProxy, type Tampering } from "../support/tampering-proxy.ts";

/* The example workflows: their settings are checked, and their scripts are run. */

const root = join(import.meta.dirname, "../..");
const folder = join(root, "docs/github-actions");

interface Step {
  id?: string;
  name?: string;
  if?: string;
  uses?: string;
  with?: Record<string, string | number | boolean>;
  env?: Record<string, string>;
  run?: string;
}
interface Job {
  environment?: string;
  needs?: string;
  permissions?: Record<string, string>;
  if?: string;
  "timeout-minutes"?: number;
  env: Record<string, string>;
  defaults: { run: { shell: string } };
  steps: Step[];
}
interface Workflow {
  on: Record<string, unknown>;
  permissions: Record<string, string>;
  concurrency: { group: string; "cancel-in-progress"?: boolean };
  jobs: Record<string, Job>;
}

const workflows = readdirSync(folder)
  .filter((file) => file.endsWith(".yml"))
  .map((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    return { file, text, workflow: parse(text, { strict: true }) as Workflow };
  });
function workflowIn(file: string): Workflow {
  const found = workflows.find((each) => each.file === file);
  if (!found) throw new Error(`docs/github-actions/${file} does not exist.`);
  return found.workflow;
}
const jobIn = (file: string, job: string) => workflowIn(file).jobs[job] as Job;
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);
const scriptsOf = (workflow: Workflow) => stepsOf(workflow).flatMap(({ run }) => run ?? []);

/** An expression as written in a workflow. */
const expression = (text: string) => `\${{ ${text} }}`;

const work = mkdtempSync(join(tmpdir(), "github-actions-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe.each(workflows)("$file", ({ text, workflow }) => {
  test("grants each job only the permissions it uses, and AWS credentials only to the one that deploys", () => {
    expect(workflow.permissions).toEqual({});
    for (const { permissions = {}, environment, steps } of Object.values(workflow.jobs)) {
      const readsRepository = steps.some(({ uses }) => uses?.startsWith("actions/checkout@"));
      const isDeploying = steps.some(({ run }) => run?.includes("cdk deploy"));
      const isAttesting = steps.some(({ uses }) => uses?.startsWith("actions/attest-build-provenance@"));
      const isCommenting = steps.some(({ run }) => run?.includes("$GITHUB_REPOSITORY/issues/"));
      const usesJobToken = steps.some(({ run }) => run?.includes("ACTIONS_ID_TOKEN_REQUEST_URL"));
      expect(permissions).toEqual({
        ...(readsRepository && { contents: "read" }),
        ...((isDeploying || usesJobToken) && { "id-token": "write" }),
        ...(isAttesting && { attestations: "write" }),
        ...(isCommenting && { "pull-requests": "write" }),
      });
      expect(environment !== undefined).toBe(isDeploying);
    }
  });

  test("limits the time of each job and does not leave the repository's credentials on disk", () => {
    for (const job of Object.values(workflow.jobs)) expect(job["timeout-minutes"]).toBeGreaterThan(0);
    for (const { uses, with: options } of stepsOf(workflow))
      if (uses?.startsWith("actions/checkout@")) expect(options).toEqual({ "persist-credentials": false });
  });

  test("masks every token and secret before it becomes an output", () => {
    for (const run of scriptsOf(workflow)) {
      for (const [line, name = ""] of run.matchAll(/^ *echo "(token|secret)=\$\w+" >> "\$GITHUB_OUTPUT"$/gm)) {
        const mask = run.indexOf(`echo "::add-mask::$${name}"`);
        expect(mask).toBeGreaterThanOrEqual(0);
        expect(mask).toBeLessThan(run.indexOf(line));
      }
    }
  });

  test("limits the time of every curl call and passes no credential in its arguments", () => {
    for (const run of scriptsOf(workflow)) {
      const calls = run
        .replaceAll(/\\\n\s*/g, "")
        .split("\n")
        .filter((line) => /(^|\|) *curl /.test(line));
      expect(calls.length).toBe(run.match(/\bcurl -/g)?.length ?? 0);
      for (const call of calls) {
        expect(call).toMatch(/--max-time \d+/);
        expect(call).not.toMatch(/Authorization|\$SIGN_IN_BODY"? *\)/);
      }
    }
  });

  test("pins every action to one commit, with its version as a comment", () => {
    const pinned = [...text.matchAll(/^ *(?:- )?uses: ([\w-]+\/[\w-]+@[0-9a-f]{40}) # v\d+\.\d+\.\d+$/gm)];
    expect(pinned.map(([, uses]) => uses)).toEqual(stepsOf(workflow).flatMap(({ uses }) => uses ?? []));
    const commits = new Set(pinned.map(([, uses = ""]) => uses));
    expect(new Set([...commits].map((uses) => uses.split("@")[0])).size).toBe(commits.size);
  });

  test("passes values to scripts as environment variables, not as expressions in their text", () => {
    for (const run of scriptsOf(workflow)) expect(run).not.toMatch(/\$\{\{/);
  });

  test("contains no long-lived AWS key", () => {
    expect(JSON.stringify(workflow)).not.toMatch(/AWS_SECRET|aws-secret-access-key|AWS_ACCESS_KEY/);
  });

  test("runs its scripts in bash, which stops at the first error", () => {
    for (const job of Object.values(workflow.jobs)) expect(job.defaults.run.shell).toBe("bash");
  });

  test("calls only existing commands", () => {
    const { scripts, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const text = scriptsOf(workflow).join("\n");
    for (const [, name = ""] of text.matchAll(/npm run (?:--silent )?([\w-]+)/g)) expect(scripts).toHaveProperty(name);
    if (text.includes("npx cdk")) expect(devDependencies).toHaveProperty("aws-cdk");
    for (const script of scriptsOf(workflow)) execFileSync("bash", ["-n"], { input: script });
  });

  test("calls only existing endpoints", () => {
    const calls = scriptsOf(workflow).flatMap((run) => [...run.matchAll(/\bapi (GET|POST|PATCH|DELETE) "([^"]+)"/g)]);
    const known = endpointRows.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`);
    for (const [, method, path = ""] of calls) {
      const full = path.replace("$webhooks", "/v1/projects/$PROJECT/webhooks").replaceAll(/\$\w+/g, "{}");
      expect(known).toContain(`${method} ${full}`);
    }
  });
});

/** Runs a step's script like GitHub does. https://docs.github.com/actions/reference/workflow-syntax-for-github-actions#jobsjob_idstepsshell */
async function runStep(step: Step | undefined, env: Record<string, string>, cwd = work) {
  if (!step?.run) throw new Error("The workflow has no such step, or the step has no script.");
  const file = join(cwd, `${randomUUID()}.sh`);
  writeFileSync(file, step.run);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const options = { cwd, env: { PATH, NODE_COMPILE_CACHE, HOME: work, ...env } };
  try {
    const { stdout, stderr } = await promisify(execFile)(
      "bash",
      ["--noprofile", "--norc", "-eo", "pipefail", file],
      options,
    );
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

/** Starts what a runner offers to a job with `id-token: write`. */
async function startRunner(ci: CiSystem, claims: () => object = () => ({})) {
  const token = randomUUID();
  const requests: string[] = [];
  const server = http.createServer(({ url = "", headers }, response) => {
    requests.push(url);
    const aud = new URL(url, "http://runner").searchParams.get("audience");
    if (headers.authorization !== `Bearer ${token}`) response.writeHead(401).end();
    else response.end(JSON.stringify({ count: 1, value: ci.token({ aud, ...claims() }) }));
  });
  return { url: `${await listening(server)}/token?api-version=2.0`, token, requests };
}

needs("bash", "curl", "jq").describe("use-the-api.yml, run", () => {
  const { steps, env: jobEnv } = jobIn("use-the-api.yml", "webhooks");
  const step = (id: string) => steps.find((each) => each.id === id);

  const service = useService();
  let user: ReturnType<TestService["user"]>;
  let project: string;
  let key: string;
  let ci: CiSystem;
  /** Where the runner offers tokens to a job. */
  let runner: { url: string; token: string; requests: string[] };
  beforeAll(async () => {
    ci = await startCiSystem("ci");
    runner = await startRunner(ci);
  });
  beforeEach(async () => {
    user = service.user();
    project = await service.project(user.userId);
    // The permissions that the file asks for, in its comment.
    const limits = { permissions: ["webhooks:read", "webhooks:write"], project_ids: [project] };
    key = (await user.api.post("/v1/api-keys", { name: "ci", ...limits })).body.data.key;
    writeFileSync(join(work, "output"), "");
    runner.requests.length = 0;
  });

  const receiver = "https://pr-7.preview.example.com/hooks/deployments";
  const webhooks = async () => (await user.api.get(`/v1/projects/${project}/webhooks`)).body.data;
  const output = () => readFileSync(join(work, "output"), "utf8");

  /** Runs the named steps against the service, through a proxy that may tamper with it. */
  async function runJob(
    ids: string[],
    { tampering, env = {} }: { tampering?: Tampering; env?: Record<string, string> } = {},
  ) {
    const proxy = await startTamperingProxy(service.baseUrl, tampering);
    const values = {
      API_KEY: key,
      API_URL: proxy.url,
      PROJECT: project,
      RECEIVER: receiver,
      RUNNER_TEMP: work,
      GITHUB_OUTPUT: join(work, "output"),
      GITHUB_RUN_ID: randomUUID(),
      GITHUB_RUN_ATTEMPT: "1",
      ...env,
    };
    try {
      let printed = "";
      for (const id of ["api", ...ids]) {
        const { code, output: text } = await runStep(step(id), values);
        printed += text;
        if (code !== 0) return { code, printed, requests: proxy.requests };
      }
      return { code: 0, printed, requests: proxy.requests };
    } finally {
      await proxy.close();
    }
  }

  /** Returns the job's log: the runner does not show lines with ::add-mask::. */
  const logOf = (printed: string) => printed.replaceAll(/^::add-mask::.*$/gm, "");

  test("the job sets exactly the variables that its steps use", () => {
    expect(Object.keys(jobEnv).sort()).toEqual(["API_KEY", "API_URL", "AUDIENCE", "PROJECT", "RECEIVER"]);
    expect(jobEnv.API_KEY).toBe(expression("secrets.PLATFORM_API_KEY"));
  });

  const keyless = (more: Record<string, string> = {}) => ({
    API_KEY: "",
    AUDIENCE,
    ACTIONS_ID_TOKEN_REQUEST_URL: runner.url,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: runner.token,
    ...more,
  });

  test("runs for pull requests of the repository itself only: forks get neither a token nor secrets", () => {
    expect(jobIn("use-the-api.yml", "webhooks").if).toBe(
      "github.event_name != 'pull_request' || github.event.pull_request.head.repo.full_name == github.repository",
    );
  });

  test("creates the webhook when a pull request is opened and deletes it when it is closed", () => {
    expect(step("create")?.if).toBe("github.event_name == 'pull_request' && github.event.action != 'closed'");
    expect(step("delete")?.if).toBe("github.event_name == 'pull_request' && github.event.action == 'closed'");
    expect(workflowIn("use-the-api.yml").on.pull_request).toEqual({
      types: ["opened", "reopened", "synchronize", "closed"],
    });
  });

  test("lists the project's webhooks, with a warning for a disabled one", async () => {
    const path = `/v1/projects/${project}/webhooks`;
    const url = "https://hooks.example.com/a?b=$(c)&d=*";
    const { id } = (await user.api.post(path, { url, events: ["deploy.started", "deploy.failed"] })).body.data;
    const { code, printed } = await runJob(["list"]);
    expect({ code, printed }).toEqual({ code: 0, printed: `${id}  ${url}  deploy.started, deploy.failed\n` });
    await user.api.patch(`${path}/${id}`, { enabled: false });
    expect((await runJob(["list"])).printed).toContain(`::warning::${url} is disabled: manual`);
  });

  test("creates a webhook for the preview, whose secret only the next step gets, replaces it in a later run, and deletes it and no other", async () => {
    const other = { url: "https://pr-77.preview.example.com/hooks/deployments", events: ["deploy.failed"] };
    const { id } = (await user.api.post(`/v1/projects/${project}/webhooks`, other)).body.data;
    const ofPreview = async () => (await webhooks()).filter((each: { id: string }) => each.id !== id);
    const { code, printed } = await runJob(["list", "create"]);
    expect(code).toBe(0);
    const [webhook] = await ofPreview();
    expect(webhook).toMatchObject({ url: receiver, events: ["deploy.succeeded", "deploy.failed"], enabled: true });
    const first = output();
    const secret = /^secret=(whsec_[0-9a-f]{64})\n$/.exec(first)?.[1];
    expect(printed).toContain(`::add-mask::${secret}\n`);
    expect(logOf(printed)).not.toContain("whsec_");
    expect(printed).not.toContain(key);
    expect(printed).toContain(`${webhook.id} sends to ${receiver}`);
    expect((await runJob(["create"])).code).toBe(0);
    const after = await ofPreview();
    expect(after).toEqual([expect.objectContaining({ url: receiver })]);
    expect(after[0].id).not.toBe(webhook.id);
    const second = output().slice(first.length);
    expect(second).toMatch(/^secret=whsec_/);
    expect(second).not.toBe(first);
    const deleted = { code: 0, printed: expect.stringMatching(/^[0-9a-f-]{36} deleted\n$/) };
    expect(await runJob(["delete"])).toMatchObject(deleted);
    expect(await webhooks()).toEqual([expect.objectContaining({ id })]);
    expect(await runJob(["delete"])).toMatchObject({ code: 0, printed: "" });
  });

  const busy = (status: number, code: string) => ({
    status,
    headers: { "Retry-After": "1" },
    body: JSON.stringify({ error: { code, message: "Wait.", request_id: "r" } }),
  });
  const responding = (status: number, body: string) => () => ({
    tampering: { respond: () => ({ status, headers: {}, body }) },
  });
  const withRunnerCommand = '{"error":{"code":"x","message":"a\\n::add-mask::b","request_id":"r"}}';
  const error = (code: string) =>
    new RegExp(`^::error::GET /v1/projects/\\S+ returned 401: ${code}, request id [0-9a-f-]{36}: `, "m");
  const invalidKey = () => ({ env: { API_KEY: `svc_${"0".repeat(64)}` } });

  test.each<[string, string, () => Parameters<typeof runJob>[1], RegExp, number]>([
    ["list", "no project trusts the repository", () => ({ env: keyless() }), error("workflow_not_trusted"), 1],
    [
      "list",
      "the job has no permission for a token, as one of a fork",
      () => ({ env: keyless({ ACTIONS_ID_TOKEN_REQUEST_URL: "" }) }),
      /^::error::The job gets no token: it needs 'permissions: id-token: write'/,
      0,
    ],
    [
      "list",
      "the job gets no token",
      () => ({ env: keyless({ ACTIONS_ID_TOKEN_REQUEST_TOKEN: "expired" }) }),
      /401/,
      0,
    ],
    ["list", "the key is not valid", invalidKey, error("invalid_api_key"), 1],
    ["create", "the key is not valid", invalidKey, error("invalid_api_key"), 1],
    ["delete", "the key is not valid", invalidKey, error("invalid_api_key"), 1],
    [
      "list",
      "the response contains a command of the runner, which is not executed",
      responding(500, withRunnerCommand),
      /^::error::.* 500: x, request id r: a ::add-mask::b\n$/,
      1,
    ],
    [
      "list",
      "the response is not from the API",
      responding(502, "<html>"),
      /returned 502: the response is not from the API/,
      1,
    ],
    [
      "list",
      "all five responses are 429",
      () => ({ tampering: { respond: () => busy(429, "rate_limited") } }),
      /returned 429: rate_limited, request id r/,
      5,
    ],
  ])("%s fails with the reason when %s", async (id, _, options, message, count) => {
    const { code, printed, requests } = await runJob([id], options());
    expect([code === 0, requests.length, output()]).toEqual([false, count, ""]);
    expect(printed).toMatch(message);
  });

  // After the failure of a repository that no project trusts.
  test("without a stored key, the job's own token is the credential, and is in no log", async () => {
    const trust = { ...ci.trust, permissions: ["webhooks:read", "webhooks:write"] };
    await user.api.post(`/v1/projects/${project}/trusted-workflows`, trust);
    const { code, printed } = await runJob(["list", "create"], { env: keyless() });
    expect(code).toBe(0);
    const [webhook] = await webhooks();
    const { data } = (await user.api.get(`/v1/projects/${project}/webhooks/${webhook.id}`)).body;
    expect(data).toMatchObject({ url: receiver, created_by: expect.stringMatching(/^workflow:/) });
    expect(runner.requests).toEqual(Array(2).fill(`/token?api-version=2.0&audience=${AUDIENCE}`));
    expect(printed).toContain("::add-mask::eyJ");
    expect(logOf(printed)).not.toContain("eyJ");
    expect(printed).not.toContain(runner.token);
    expect((await runJob(["delete"], { env: keyless() })).code).toBe(0);
    expect(await webhooks()).toEqual([]);
  });

  test("retries 503 after Retry-After", async () => {
    const times: number[] = [];
    const respond = () => (times.push(Date.now()) === 1 ? busy(503, "service_unavailable") : undefined);
    expect(await runJob(["list"], { tampering: { respond } })).toMatchObject({ code: 0 });
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("a create that is sent again in the same run, because its response was lost, creates nothing else", async () => {
    const env = { GITHUB_RUN_ID: "7", GITHUB_RUN_ATTEMPT: "2" };
    expect((await runJob(["create"], { env })).code).toBe(0);
    // The list of the second run does not show the webhook yet.
    const empty = { status: 200, headers: {}, body: JSON.stringify({ data: [] }) };
    const respond = ({ method }: ProxiedRequest) => (method === "GET" ? empty : undefined);
    const { code, printed } = await runJob(["create"], { env, tampering: { respond } });
    expect(code).toBe(1);
    expect(printed).toMatch(/already_created, request id \S+: This request has already created [0-9a-f-]{36}/);
    expect(await webhooks()).toHaveLength(1);
  });

  /** Answers the first request of a method with 503, although it took effect. */
  const tookEffect = (tampered: string): Tampering => {
    let isFirst = true;
    const response = (received: { status: number; body: string }, { method }: ProxiedRequest) => {
      if (method !== tampered || !isFirst) return;
      isFirst = false;
      Object.assign(received, busy(503, "service_unavailable"));
    };
    return { response };
  };

  test("create goes on when a delete took effect despite its 503", async () => {
    await runJob(["create"]);
    const [before] = await webhooks();
    expect((await runJob(["create"], { tampering: tookEffect("DELETE") })).code).toBe(0);
    expect(await webhooks()).toEqual([expect.not.objectContaining({ id: before.id })]);
  });

  test("does not create a second webhook when a create took effect despite its 503", async () => {
    const { code, requests } = await runJob(["create"], { tampering: tookEffect("POST") });
    expect(code).toBe(0);
    expect(await webhooks()).toHaveLength(1);
    expect(output()).toMatch(/^secret=whsec_[0-9a-f]{64}\n$/);
    expect(
      requests.map(
        ({ method, path }) => `${method} ${path.replace(/^.*webhooks/, "").replace(/[0-9a-f-]{36}/, "<id>")}`,
      ),
    ).toEqual(["GET ", "POST ", "GET ", "DELETE /<id>", "POST "]);
  });
});

needs("bash", "curl", "jq").describe("wait-for-a-deployment.yml, run", () => {
  const { steps, env: jobEnv } = jobIn("wait-for-a-deployment.yml", "wait");
  const wait = steps.find(({ id }) => id === "wait");
  const service = useService();
  let values: Record<string, string>;
  let keyless: Record<string, string>;
  let requests: string[];
  beforeAll(async () => {
    const ci = await startCiSystem("ci-of-waits");
    // They expire so soon that svc requests one before each request.
    const runner = await startRunner(ci, () => ({ exp: Math.floor(Date.now() / 1000) + 20 }));
    requests = runner.requests;
    keyless = {
      SVC_API_KEY: "",
      AUDIENCE,
      ACTIONS_ID_TOKEN_REQUEST_URL: runner.url,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: runner.token,
    };
    const user = service.user();
    const projectId = await service.project(user.userId);
    const trust = { ...ci.trust, permissions: ["events:read"] };
    await user.api.post(`/v1/projects/${projectId}/trusted-workflows`, trust);
    const limits = { permissions: ["events:read"], project_ids: [projectId] };
    const { key } = (await user.api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
    const bin = join(work, "bin");
    mkdirSync(bin);
    symlinkSync(join(root, "packages/cli/bin/svc.js"), join(bin, "svc"));
    values = {
      PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`,
      SVC_BASE_URL: service.baseUrl,
      SVC_API_KEY: key,
      PROJECT: projectId,
      TIMEOUT: "2s",
      GITHUB_OUTPUT: join(work, "url"),
    };
  });

  /** Runs the step for a deployment with this event. */
  async function runWait(event?: object, env: Record<string, string> = {}) {
    const DEPLOYMENT = randomUUID();
    if (event) {
      await givenEvent(eventOf(values.PROJECT ?? "", { deployment_id: DEPLOYMENT, ...event }));
    }
    writeFileSync(join(work, "url"), "");
    const { code, output } = await runStep(wait, { ...values, ...env, DEPLOYMENT });
    return { code, output, url: readFileSync(join(work, "url"), "utf8") };
  }

  test("sets exactly the variables that its steps use, and passes the key to one of them", () => {
    expect(Object.keys(jobEnv).sort()).toEqual(["AUDIENCE", "DEPLOYMENT", "PROJECT", "SVC_BASE_URL", "TIMEOUT"]);
    expect(steps.filter(({ env }) => JSON.stringify(env ?? {}).includes("secrets."))).toEqual([wait]);
  });

  test("installs svc from a tarball with the configured hash, and from no other file", async () => {
    // test/packages/cli/svc-packed.test.ts installs the real one.
    const folder = mkdtempSync(join(work, "package-"));
    mkdirSync(join(folder, "package"));
    const write = (file: string, text: string) => writeFileSync(join(folder, "package", file), text);
    write("package.json", '{"name":"svc","version":"1.0.0","bin":"svc.sh"}');
    write("svc.sh", "#!/bin/sh\necho installed\n");
    const tarball = execFileSync("tar", ["-cz", "package"], { cwd: folder });
    const baseUrl = await listening(http.createServer((_, response) => response.end(tarball)));
    const prefix = join(work, "global");
    const install = (SVC_SHA256: string) =>
      runStep(
        steps.find(({ name }) => name === "Install svc"),
        {
          PATH: userEnvironment.PATH,
          RUNNER_TEMP: work,
          SVC_URL: `${baseUrl}/svc.tgz`,
          SVC_SHA256,
          npm_config_prefix: prefix,
        },
      );
    for (const wrong of ["0".repeat(64), ""]) {
      expect((await install(wrong)).code).not.toBe(0);
      expect(existsSync(join(prefix, "bin/svc"))).toBe(false);
    }
    const hash = createHash("sha256").update(tarball).digest("hex");
    expect(await install(hash)).toMatchObject({ code: 0 });
    expect(execFileSync(join(prefix, "bin/svc"), { env: userEnvironment, encoding: "utf8" })).toBe("installed\n");
  });

  test("returns the address of a deployment that has succeeded", async () => {
    const data = { url: "https://app.example.com/?a=1", status: "running" };
    const timestamp = "2026-11-21T04:04:29.027Z";
    const { code, output, url } = await runWait({ event: "deploy.succeeded", data, timestamp });
    expect({ code, output, url }).toEqual({
      code: 0,
      output: `deploy.succeeded at ${timestamp}\n`,
      url: `url=${data.url}\n`,
    });
  });

  test("without a stored key, the token of the job is the credential, which svc renews, and it is in no log", async () => {
    const { code, output } = await runWait({ event: "deploy.failed" }, keyless);
    expect([code, output.replaceAll(/^::add-mask::.*$/gm, "")]).toEqual([1, expect.not.stringContaining("eyJ")]);
    expect(output).toContain("deploy.failed at");
    expect(requests).toEqual(Array(2).fill(`/token?api-version=2.0&audience=${AUDIENCE}`));
  });

  test.each<[string, object | undefined, Record<string, string>, number, string]>([
    ["has failed", { event: "deploy.failed" }, {}, 1, "ended with exit code 1."],
    ["does not end", { event: "deploy.started" }, {}, 124, "ended with exit code 124."],
    ["is not known", undefined, {}, 124, "::error::The wait for the deployment ended with exit code 124."],
    [
      "is to be read without a key and the permission for a token",
      undefined,
      { SVC_API_KEY: "" },
      1,
      "id-token: write'",
    ],
  ])("fails when the deployment %s", async (_, event, env, expected, message) => {
    const { code, output, url } = await runWait(event, env);
    expect({ code, url }).toEqual({ code: expected, url: "" });
    expect(output).toContain(message);
  });
});

needs("bash", "curl", "jq").describe("apply-webhooks.yml, run", () => {
  const { jobs } = workflowIn("apply-webhooks.yml");
  const stepOf = (job: string, id: string) => jobs[job]?.steps.find((each) => each.id === id);
  const service = useService();
  const url = "https://new.example.com/hook";
  const other = "https://chat.example.com/services/private";
  const existing = "https://known.example.com/";
  const PULL = "/repos/acme/shop/issues/7/comments";
  const file = "acme/shop/.github/workflows/apply-webhooks.yml";
  const stranger = { id: 1, user: { login: "eve" }, body: "" };

  let user: ReturnType<TestService["user"]>;
  let values: Record<string, string>;
  let claims: object;
  /** What GitHub has received and has: the comments of the pull request. */
  let calls: string[];
  let comments: { id: number; user: { login: string }; body: string }[];
  let isLocked: boolean;

  beforeAll(async () => {
    const ci = await startCiSystem("ci-of-files");
    const runner = await startRunner(ci, () => claims);
    user = service.user();
    const PROJECT = await service.project(user.userId);
    // As in the comment of the file.
    const atMain = { job_workflow_ref: `${file}@refs/heads/main`, permissions: ["webhooks:read", "webhooks:write"] };
    for (const event of [{ event_name: "pull_request" }, { event_name: "push", ref: "refs/heads/main" }]) {
      await user.api.post(`/v1/projects/${PROJECT}/trusted-workflows`, { ...ci.trust, ...atMain, ...event });
    }
    const github = http.createServer(async (request, response) => {
      const { method = "", url: path = "", headers } = request;
      calls.push(`${method} ${path}`);
      const { body } = method === "GET" ? { body: "" } : JSON.parse(Buffer.concat(await request.toArray()).toString());
      if (headers.authorization !== "Bearer github" || (isLocked && method !== "GET")) response.writeHead(403);
      const [, page] = /^\/repos\/acme\/shop\/issues\/7\/comments\?per_page=100&page=(\d+)$/.exec(path) ?? [];
      const id = Number(/^\/repos\/acme\/shop\/issues\/comments\/(\d+)$/.exec(path)?.[1]);
      if (method === "POST" && !isLocked) comments.push({ id: 900, user: { login: "github-actions[bot]" }, body });
      for (const comment of comments) if (comment.id === id) comment.body = body;
      response.end(JSON.stringify(page ? comments.slice(Number(page) * 100 - 100, Number(page) * 100) : {}));
    });
    const bin = join(mkdtempSync(join(work, "bin-")), "bin");
    mkdirSync(bin);
    symlinkSync(join(root, "packages/cli/bin/svc.js"), join(bin, "svc"));
    values = {
      ...{ PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`, SVC_BASE_URL: service.baseUrl },
      ...{ AUDIENCE, PROJECT, FILE: join(work, "webhooks.yml"), PRUNE: "", RUNNER_TEMP: work },
      ...{ ACTIONS_ID_TOKEN_REQUEST_URL: runner.url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: runner.token },
      ...{ GITHUB_API_URL: await listening(github), GITHUB_TOKEN: "github", GITHUB_REPOSITORY: "acme/shop" },
      ...{ PULL_REQUEST: "7", GITHUB_SERVER_URL: "https://github.test", GITHUB_RUN_ID: "42" },
      GITHUB_STEP_SUMMARY: join(work, "summary"),
    };
  });
  beforeEach(async () => {
    for (const { id } of await webhooks()) await user.api.delete(`${path()}/${id}`);
    for (const each of [other, existing]) await user.api.post(path(), { url: each, events: ["deploy.failed"] });
    calls = [];
    comments = [stranger];
    isLocked = false;
    claims = { event_name: "pull_request", ref: "refs/pull/7/merge", job_workflow_ref: `${file}@refs/heads/main` };
    writeFile([
      { url, events: ["deploy.failed"], enabled: false },
      { url: existing, events: ["deploy.started"] },
    ]);
    for (const name of ["summary", "comment.md"]) rmSync(join(work, name), { force: true });
  });

  const path = () => `/v1/projects/${values.PROJECT}/webhooks`;
  const webhooks = async () => (await user.api.get(path())).body.data;
  const urls = async () => (await webhooks()).map((each: { url: string }) => each.url);
  const writeFile = (declared: object[] | string) =>
    writeFileSync(values.FILE ?? "", JSON.stringify({ webhooks: declared }));
  const summary = () => readFileSync(join(work, "summary"), "utf8");
  /** Returns the log, which has no lines with ::add-mask::. */
  async function run(job: string, ids: string[], env: Record<string, string> = {}) {
    let log = "";
    const codes: number[] = [];
    for (const id of ids) {
      const { code, output } = await runStep(stepOf(job, id), { ...values, ...env });
      log += output.replaceAll(/^::add-mask::.*\n/gm, "");
      codes.push(code);
    }
    return { codes, log };
  }
  const plan = (env?: Record<string, string>) => run("plan", ["plan", "comment"], env);
  const pushed = () => {
    claims = { event_name: "push", ref: "refs/heads/main", job_workflow_ref: `${file}@refs/heads/main` };
  };

  test("plans for pull requests of the repository itself, and applies on main", () => {
    const isFork = "github.event.pull_request.head.repo.full_name != github.repository";
    expect(Object.entries(jobs).map(([name, job]) => [name, job.if])).toEqual([
      ["plan", `github.event_name == 'pull_request' && ${isFork.replace("!=", "==")}`],
      ["plan-of-a-fork", `github.event_name == 'pull_request' && ${isFork}`],
      ["apply", "github.event_name == 'push' && github.ref == 'refs/heads/main'"],
    ]);
    expect(Object.keys(workflowIn("apply-webhooks.yml").on)).toEqual(["workflow_call"]);
  });

  test("the calling job of the comment grants what the jobs need, and the trusted workflows are those of this test", () => {
    const { text = "" } = workflows.find((each) => each.file === "apply-webhooks.yml") ?? {};
    const caller = /^# {3}name: Webhooks\n(?:# {3}.*\n)+/m.exec(text)?.[0].replaceAll(/^# {3}/gm, "") ?? "";
    const { on, jobs: calling } = parse(caller) as Workflow & { jobs: Record<string, Job & { uses: string }> };
    expect(Object.keys(on)).toEqual(["pull_request", "push"]);
    expect(calling.webhooks?.uses).toBe(`${file}@main`);
    expect(calling.webhooks?.permissions).toEqual({ ...jobs.plan?.permissions, ...jobs.apply?.permissions });
    const rights = "--permission webhooks:read webhooks:write";
    for (const event of ["pull_request", "push --ref refs/heads/main"]) {
      expect(text).toContain(`\n#   svc workflows trust "$id" --file "$file" --event ${event} ${rights}\n`);
    }
  });

  test("both jobs have the same settings, and install svc like wait-for-a-deployment.yml, before the checkout", () => {
    expect(jobs.apply?.env).toEqual(jobs.plan?.env);
    const installed = jobIn("wait-for-a-deployment.yml", "wait").steps.slice(0, 2);
    for (const job of ["plan", "apply"]) {
      expect(jobs[job]?.steps.slice(0, 2)).toEqual(installed);
      expect(jobs[job]?.steps[2]?.uses).toMatch(/^actions\/checkout@/);
    }
  });

  test("a plan is in the log, the summary and one comment, which the next one updates, and changes nothing", async () => {
    comments = Array.from({ length: 150 }, (_, id) => ({ ...stranger, id }));
    const { codes, log } = await plan();
    expect(codes).toEqual([0, 0]);
    const [{ body = "" } = {}, ...more] = comments.slice(150);
    expect(more).toEqual([]);
    const lines = [
      `+ ${url}`,
      "-   events: deploy.failed\n+   events: deploy.started",
      "  https://chat.example.com/***  ",
    ];
    for (const text of lines) {
      expect(body).toContain(`\n${text}`);
      expect(log).toContain(`| ${text.replace("\n", "\n| ")}`);
    }
    expect(body).toContain("```diff\n+ ");
    expect(body).toMatch(/\n1 to create, 1 to update, 1 not in the file [^\n]*\n```\n$/);
    expect(body).toContain("([log](https://github.test/acme/shop/actions/runs/42))");
    expect(summary()).toBe(body);
    for (const text of [log, body]) expect(text).not.toMatch(/private|eyJ/);
    expect(await urls()).toEqual([other, existing]);

    // A comment with the same first line of another author stays as it is.
    comments[3] = { id: 3, user: { login: "eve" }, body };
    calls = [];
    expect((await plan({ PRUNE: "--prune" })).codes).toEqual([0, 0]);
    expect(calls).toEqual([
      ...[1, 2].map((page) => `GET ${PULL}?per_page=100&page=${page}`),
      "PATCH /repos/acme/shop/issues/comments/900",
    ]);
    expect(comments[150]?.body).toMatch(
      /\n- https:\/\/chat\.example\.com\/\*{3} .* with its delivery log\n1 to create/,
    );
    expect([comments.length, comments[3].body]).toEqual([151, body]);
  });

  test("a plan that is longer than a comment is cut", async () => {
    const long = (index: number) => `https://${index}.example.com/${"x".repeat(1900)}`;
    writeFile(Array.from({ length: 40 }, (_, index) => ({ url: long(index), events: ["deploy.failed"] })));
    expect((await plan()).codes).toEqual([0, 0]);
    expect(comments[1]?.body.length).toBeLessThan(61_000);
    expect(comments[1]?.body.slice(-9)).toMatch(/x\n…\n```\n$/);
  });

  test("a plan whose comment is refused succeeds with a warning, and is in the summary", async () => {
    isLocked = true;
    const { codes, log } = await plan();
    expect(codes).toEqual([0, 0]);
    expect(log).toContain("::warning::The plan is in the summary of this run");
    expect(summary()).toContain(`+ ${url}`);
  });

  test("a file that is not valid fails, with the reason in the log alone, which the runner takes for no command", async () => {
    writeFileSync(values.FILE ?? "", '{"webhooks": [], "x\\n::add-mask::y": 1}');
    const { codes, log } = await plan();
    expect(codes).toEqual([2, 0]);
    expect(log).toContain("| The file of webhooks is not valid.\n");
    expect(log).toMatch(/^\| ::add-mask::y$/m);
    expect(comments[1]?.body).toMatch(/There is no plan: exit code 2\. The log has the reason\.\n$/);
  });

  test.each<[string, string, object, Record<string, string>, string]>([
    [
      "plan",
      "the token is of a file that the pull request changed",
      { job_workflow_ref: `${file}@refs/pull/7/merge` },
      {},
      "workflow_not_trusted",
    ],
    ["apply", "a branch is pushed", { event_name: "push", ref: "refs/heads/next" }, {}, "workflow_not_trusted"],
    [
      "plan",
      "the job may not request a token",
      {},
      { ACTIONS_ID_TOKEN_REQUEST_URL: "" },
      "::error::The job gets no token",
    ],
    [
      "apply",
      "the job may not request a token",
      {},
      { ACTIONS_ID_TOKEN_REQUEST_URL: "" },
      "::error::The job gets no token",
    ],
  ])("%s fails and changes nothing when %s", async (job, _, own, env, message) => {
    claims = { ...claims, ...own };
    const { codes, log } = await run(job, [job], env);
    expect(codes[0]).toBeGreaterThan(0);
    expect(log).toContain(message);
    expect(await urls()).toEqual([other, existing]);
  });

  test("applies the file, and the secret of a new webhook is in one file, which only its owner can read", async () => {
    pushed();
    const { codes, log } = await run("apply", ["apply"]);
    expect(codes).toEqual([0]);
    expect(await urls()).toEqual([other, existing, url]);
    expect(log).toContain("| Changes made: 2.\n");
    const { id } = (await webhooks())[2];
    const secrets = join(work, "webhook-secrets.txt");
    expect(readFileSync(secrets, "utf8")).toMatch(RegExp(`^${id}  whsec_[0-9a-f]{64}  ${url}\n$`));
    expect(statSync(secrets).mode & 0o077).toBe(0);
    for (const text of [log, summary()]) expect(text).not.toMatch(/whsec_|private|eyJ/);
    expect(summary()).toContain(`svc webhooks rotate ${id} --project ${values.PROJECT} --overlap 0`);

    const pruned = await run("apply", ["apply"], { PRUNE: "--prune" });
    expect(pruned).toEqual({ codes: [0], log: expect.stringContaining("- https://chat.example.com/***") });
    expect(await urls()).toEqual([existing, url]);
  });

  test("keeps the secret of a webhook that was created before a change failed", async () => {
    pushed();
    writeFile([
      { url, events: ["deploy.failed"] },
      { url: "ftp://example.com/", events: ["deploy.failed"] },
    ]);
    const { codes, log } = await run("apply", ["apply"]);
    expect(codes).toEqual([2]);
    expect(log).toContain("| Could not create ftp://example.com/. Changes made before: 1.");
    expect(readFileSync(join(work, "webhook-secrets.txt"), "utf8")).toMatch(/ {2}whsec_[0-9a-f]{64} {2}/);
    expect(summary()).toContain("svc webhooks rotate");
  });
});

describe("deploy.yml", () => {
  const { steps, environment, env } = jobIn("deploy.yml", "deploy");
  const step = (id: string) => steps.find((each) => each.id === id);
  const workflow = workflowIn("deploy.yml");

  test("deploys existing stages, each in its environment, one at a time", () => {
    const stage = expression("inputs.stage || 'dev'");
    const { inputs } = workflow.on.workflow_dispatch as { inputs: { stage: { options: string[] } } };
    expect(inputs.stage.options).toEqual(stages.map(({ name }) => name));
    expect([environment, env.STAGE]).toEqual([stage, stage]);
    expect(workflow.concurrency).toEqual({ group: `deploy-${stage}`, "cancel-in-progress": false });
  });

  test("tests in a job without credentials, runs the guard before and the smoke test after the deployment", () => {
    expect(jobIn("deploy.yml", "test").steps.at(-1)?.run).toBe("npm test");
    expect(jobIn("deploy.yml", "deploy").needs).toBe("test");
    expect(steps.flatMap(({ id }) => id ?? [])).toEqual(["build", "diff", "guard", "deploy", "sign-in", "smoke"]);
    const credentials = steps.findIndex(({ uses }) => uses?.startsWith("aws-actions/configure-aws-credentials@"));
    expect(credentials).toBeGreaterThan(steps.findIndex(({ id }) => id === "build"));
    expect(step("deploy")?.run).toMatch(/^npx cdk deploy --app cdk\.out --require-approval never/);
  });

  test("deploys the assembly that it attests, with the list of its packages", () => {
    const { run = "" } = step("build") ?? {};
    expect(run).toContain('npx cdk synth -c stage="$STAGE" --quiet\n');
    expect(run).toMatch(/tar .* -czf assembly\.tar\.gz cdk\.out\n/);
    expect(run).toContain("npm sbom --sbom-format cyclonedx > sbom.cdx.json\n");
    expect(JSON.parse(readFileSync(join(root, "cdk.json"), "utf8")).output).toBe("cdk.out");
    for (const id of ["diff", "deploy"]) expect(step(id)?.run).toContain(" --app cdk.out ");
    const [attestation, upload] = ["attest-build-provenance", "upload-artifact"].map(
      (name) => steps.find(({ uses }) => uses?.startsWith(`actions/${name}@`))?.with,
    );
    expect(attestation).toEqual({ "subject-path": "assembly.tar.gz\nsbom.cdx.json\n" });
    expect(run).toMatch(/tar -czf source-maps\.tar\.gz dist\/maps\n/);
    expect(upload?.path).toBe("assembly.tar.gz\nsbom.cdx.json\nsource-maps.tar.gz\n");
  });

  test("uses the Node of the package of that name, as the install requires", () => {
    const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect(readFileSync(join(root, ".nvmrc"), "utf8").trim()).toBe(devDependencies.node);
    const setups = stepsOf(workflow).filter(({ uses }) => uses?.startsWith("actions/setup-node@"));
    expect(setups.map((setup) => setup.with)).toEqual(setups.map(() => ({ "node-version-file": ".nvmrc" })));
  });

  test("package.json allows or forbids every install script explicitly", () => {
    const { allowScripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
    const withScript = Object.entries<{ hasInstallScript?: true; os?: string[] }>(packages)
      .filter(([, { hasInstallScript, os }]) => hasInstallScript && (os === undefined || os.includes("linux")))
      .map(([path]) => path.replace(/^.*node_modules\//, ""));
    expect(withScript).toContain("esbuild");
    expect(withScript.filter((name) => !(name in allowScripts))).toEqual([]);
  });

  test("reads the base URL from an output of the stack", async () => {
    writeFileSync(join(work, "outputs.json"), '{"deployment-webhooks-dev":{"ApiUrl":"http://127.0.0.1:1"}}');
    const smoke = {
      ...step("smoke"),
      run: step("smoke")?.run?.replace("npm run --silent smoke --", "echo"),
    } as Step;
    const RECEIVER = "https://hooks.example.com/";
    expect(await runStep(smoke, { STAGE: "dev", RECEIVER })).toEqual({
      code: 0,
      output: `--receiver ${RECEIVER} --url http://127.0.0.1:1\n`,
    });
    expect((await runStep(smoke, { STAGE: "prod" })).code).not.toBe(0);
    expect(readFileSync(join(root, "lib/service-stack.ts"), "utf8")).toMatch(/\bApiUrl:/);
    expect(readFileSync(join(root, "bin/commands/app.ts"), "utf8")).toContain(
      "new ServiceStack(app, stackName(stage), ",
    );
    expect(stackName({ name: "prod" })).toBe("deployment-webhooks-prod");
  });

  /* The guard, on real output of `cdk diff`. Each run of the CLI takes seconds, so one diff shows all changes, and one
   without changes is a copy of its output. */

  /** Returns a template, changed in every way that the guard stops at, and in ways that it accepts. */
  function templateOf(isChanged: boolean): object {
    const suffix = isChanged ? "b" : "a";
    const table = (sortKey: string) => ({
      Type: "AWS::DynamoDB::GlobalTable",
      DeletionPolicy: "Retain",
      Properties: {
        AttributeDefinitions: ["id", sortKey].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
        KeySchema: [
          { AttributeName: "id", KeyType: "HASH" },
          { AttributeName: sortKey, KeyType: "RANGE" },
        ],
      },
    });
    const queue = (Properties: object) => ({ Type: "AWS::SQS::Queue", Properties });
    const resources = {
      Table: table(suffix),
      Queue: queue({ QueueName: suffix }),
      Secret: { Type: "AWS::SecretsManager::Secret", Properties: { Name: suffix } },
      ChangedQueue: queue({ VisibilityTimeout: isChanged ? 60 : 30 }),
      ...(isChanged
        ? { NewQueue: queue({}) }
        : { SecondTable: table("a"), Key: { Type: "AWS::KMS::Key", DeletionPolicy: "Retain", Properties: {} } }),
    };
    const withPaths = Object.entries(resources).map(([name, resource]) => [
      `${name}12345678`,
      { ...resource, Metadata: { "aws:cdk:path": `stack/${name}/Resource` } },
    ]);
    return { Resources: Object.fromEntries(withPaths) };
  }

  /** Returns what `cdk diff` prints for the change from one template to the other. */
  async function diff(before: object, after: object): Promise<string> {
    const properties = { templateFile: "after.json" };
    const stack = { type: "aws:cloudformation:stack", environment: "aws://unknown-account/unknown-region", properties };
    const files = {
      "before.json": before,
      "after.json": after,
      "manifest.json": { version: "48.0.0", artifacts: { stack } },
    };
    const assembly = mkdtempSync(join(work, "assembly-"));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(assembly, name), JSON.stringify(content));
    const args = ["diff", "--app", assembly, "--template", join(assembly, "before.json"), "--no-color"];
    const cdk = join(root, "node_modules/.bin/cdk");
    const { stdout, stderr } = await promisify(execFile)(cdk, args, { cwd: work, env: { ...process.env, HOME: work } });
    return stdout + stderr;
  }

  function guard(diff: string) {
    writeFileSync(join(work, "diff.txt"), diff);
    return runStep(step("guard"), {});
  }

  describe("the guard", () => {
    let lines: string[];
    beforeAll(async () => {
      lines = (await diff(templateOf(false), templateOf(true))).split("\n");
    });

    const isResource = (line: string) => /^\[[-+~]\] AWS::/.test(line);
    const destructive: [string, RegExp][] = [
      ["a table whose key changes", /^\[~\] AWS::DynamoDB::GlobalTable Table .* replace$/],
      ["a table that is removed", /^\[-\] AWS::DynamoDB::GlobalTable SecondTable.* orphan$/],
      ["a queue whose name changes", /^\[~\] AWS::SQS::Queue Queue .* replace$/],
      ["a secret whose name changes", /^\[~\] AWS::SecretsManager::Secret .* replace$/],
      ["a key that is removed", /^\[-\] AWS::KMS::Key .* orphan$/],
    ];
    const isDestructive = (line: string) => destructive.some(([, expected]) => expected.test(line));

    test.each(destructive)("stops at %s", async (_, expected) => {
      const [line, ...others] = lines.filter((each) => expected.test(each));
      expect({ line, others }).toEqual({ line: expect.any(String), others: [] });
      // The diff as if this were the only destructive change.
      const { code, output } = await guard(lines.filter((each) => each === line || !isDestructive(each)).join("\n"));
      expect({ code, output }).toEqual({
        code: 1,
        output: `${line}\n::error::This would delete stored data. See the lines above.\n`,
      });
    });

    test("accepts a queue that changes in place and a new queue", async () => {
      const accepted = lines.filter((line) => !isDestructive(line));
      expect(accepted.filter(isResource)).toEqual([
        expect.stringMatching(/^\[\+\] AWS::SQS::Queue NewQueue/),
        expect.stringMatching(/^\[~\] AWS::SQS::Queue ChangedQueue/),
      ]);
      expect(await guard(accepted.join("\n"))).toEqual({ code: 0, output: "" });
    });
  });

  const INCOMPLETE = "::error::The diff is incomplete.\n";
  const DESTRUCTIVE = "::error::This would delete stored data. See the lines above.\n";
  const ofStack = (line: string) => `Stack\nResources\n${line}\n\n✨  Number of stacks with differences: 1\n`;
  const replacedQueue = "[~] AWS::SQS::Queue Queues/Events QueuesEvents12 may be replaced";

  test.each([
    ["stops at a queue that may be replaced", ofStack(replacedQueue), `${replacedQueue}\n${DESTRUCTIVE}`],
    ["accepts the removal of a queue policy", ofStack("[-] AWS::SQS::QueuePolicy Queues/Policy Queues12 destroy"), ""],
    ["accepts the replacement of a stateless resource", ofStack("[~] AWS::Lambda::Version Api/V Api12 replace"), ""],
    [
      "accepts a diff without changes",
      "Stack Stack\nThere were no differences\n\n\n✨  Number of stacks with differences: 0\n",
      "",
    ],
    [
      "stops when the diff failed",
      "Need to perform AWS calls for account 1, but no credentials have been configured\n",
      INCOMPLETE,
    ],
  ])("the guard %s", async (_, diff, output) => {
    expect(await guard(diff)).toEqual({ code: output === "" ? 0 : 1, output });
  });
});

needs("bash", "jq").describe("install.sh", () => {
  const link = { resolved: "packages/cli", link: true };
  const packages = {
    "node_modules/a": { version: "1.0.0", integrity: "sha512-a" },
    "node_modules/cli": link,
    "packages/cli": { version: "1.0.0" },
  };
  const withoutHash = { "node_modules/@b/darwin-arm64": { version: "2.0.0" }, "node_modules/c/node_modules/d": {} };

  /** Runs the script in a folder with these packages. `npmCi` is what the stub of `npm ci` does. */
  async function install({ locked = {}, installed = {}, npmCi = ":", node = "24.1.0" } = {}) {
    const cwd = mkdtempSync(join(work, "install-"));
    const write = (file: string, value: object) => writeFileSync(join(cwd, file), JSON.stringify(value));
    mkdirSync(join(cwd, "node_modules/.bin"), { recursive: true });
    mkdirSync(join(cwd, "bin"));
    write("package.json", { devDependencies: { node: "24.1.0" } });
    write("package-lock.json", { packages: { "": { name: "root" }, ...packages, ...locked } });
    write("node_modules/.package-lock.json", { packages: { ...packages, ...installed } });
    const program = (name: string, body: string) =>
      writeFileSync(join(cwd, "bin", name), `#!/usr/bin/env bash\n${body}\n`, { mode: 0o755 });
    program("node", `echo v${node}`);
    program("npm", `echo "npm $*"; ${npmCi}`);
    const env = { PATH: `${join(cwd, "bin")}:${process.env.PATH}`, HOME: work };
    const script = join(folder, "install.sh");
    const { code, stdout, stderr } = await promisify(execFile)(script, { cwd, env })
      .then((output) => ({ code: 0, ...output }))
      .catch((error: { code: number; stdout: string; stderr: string }) => error);
    const hasNode = existsSync(join(cwd, "node_modules/.bin/node"));
    return { code, commands: stdout.match(/^npm .*$/gm), output: stdout + stderr, hasNode };
  }

  test.each([
    ["links the job's Node after npm ci", {}, ""],
    ["fails with npm ci", { npmCi: "echo 'npm error code EINTEGRITY' >&2; exit 1" }, "npm error code EINTEGRITY"],
    ["accepts packages without a hash, of other platforms, that are not installed", { locked: withoutHash }, ""],
    [
      "fails when packages without a hash were installed",
      { locked: withoutHash, installed: withoutHash },
      "::error::Packages without a hash in package-lock.json: node_modules/@b/darwin-arm64, node_modules/c/node_modules/d\n",
    ],
    [
      "fails with another Node than the tests use",
      { node: "24.0.0" },
      "::error::The job needs Node 24.1.0 (.nvmrc), and has v24.0.0.",
    ],
  ])("%s", async (_, options, message) => {
    const { output, ...result } = await install(options);
    const commands = ["npm ci --ignore-scripts --no-audit --no-fund"];
    expect(result).toEqual({ code: message === "" ? 0 : 1, commands, hasNode: message === "" });
    expect(output).toContain(message);
  });

  test("accepts the packages of this checkout", async () => {
    const packagesOf = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8")).packages;
    const [locked, installed] = [packagesOf("package-lock.json"), packagesOf("node_modules/.package-lock.json")];
    // Install scripts have run here, and that of the package "node" adds one.
    for (const name of Object.keys(installed)) if (name.startsWith("node_modules/node/")) delete installed[name];
    expect(await install({ locked, installed })).toMatchObject({ code: 0 });
  });
});

describe("deploying-from-github.md", () => {
  const page = readFileSync(join(root, "docs/deploying-from-github.md"), "utf8");
  const [trust, rights] = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = ""]) => JSON.parse(text));

  test("the role trusts exactly one repository and one environment", () => {
    const [statement, ...others] = trust.Statement;
    expect(others).toEqual([]);
    expect(statement.Action).toBe("sts:AssumeRoleWithWebIdentity");
    expect(Object.keys(statement.Condition)).toEqual(["StringEquals"]);
    expect(statement.Condition.StringEquals).toEqual({
      "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
      "token.actions.githubusercontent.com:sub": "repo:<owner>/<repository>:environment:<stage>",
    });
  });

  test("each stage is bootstrapped with its own qualifier", () => {
    for (const { name, bootstrapQualifier } of stages)
      expect(page).toContain(`| \`${name}\` | \`${bootstrapQualifier}\` |`);
    expect(page).toContain('npx cdk bootstrap --qualifier "$QUALIFIER" --toolkit-stack-name "CDKToolkit-$QUALIFIER"\n');
    const others = ["README.md", "docs/deployment.md", "docs/runbook.md", "docs/deploying-from-github.md"].flatMap(
      (path) =>
        [...readFileSync(join(root, path), "utf8").matchAll(/^ *npx cdk bootstrap(?! --qualifier).*$/gm)].map(String),
    );
    expect(others).toEqual([]);
  });

  test("the role can only assume the roles of cdk bootstrap with the stage's qualifier", () => {
    expect(rights.Statement).toEqual([
      {
        Effect: "Allow",
        Action: "sts:AssumeRole",
        Resource: "arn:aws:iam::<account>:role/cdk-<qualifier>-*-<account>-<region>",
      },
    ]);
  });

  test("lists every variable and secret that the workflow uses", () => {
    const workflow = readFileSync(join(folder, "deploy.yml"), "utf8");
    const used = [...workflow.matchAll(/\$\{\{ (vars|secrets)\.(\w+) \}\}/g)];
    expect(used.length).toBeGreaterThan(3);
    for (const [, kind, name] of used)
      expect(page).toContain(`| ${kind === "vars" ? "variable" : "secret"} | \`${name}\` |`);
  });
});
