import { execFile, execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { App, Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as kms from "aws-cdk-lib/aws-kms";
import * as secretsmanager from "aws-cdk-lib/aws-secretsmanager";
import * as sqs from "aws-cdk-lib/aws-sqs";
import { parse } from "yaml";
import { endpoints } from "../../functions/manifest/endpoints.ts";
import { stages } from "../../lib/stages.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { type Asked, type Spoil, startSpoilingProxy } from "../support/spoiling-proxy.ts";

/* The example workflows do what they say: they are read, and their steps are run. */

const root = join(import.meta.dirname, "../..");
const folder = join(root, "docs/github-actions");

interface Step {
  id?: string;
  name?: string;
  if?: string;
  uses?: string;
  with?: Record<string, string>;
  env?: Record<string, string>;
  run?: string;
}
interface Job {
  environment?: string;
  needs?: string;
  permissions?: Record<string, string>;
  if?: string;
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

const workflows = readdirSync(folder).map((file) => ({
  file,
  workflow: parse(readFileSync(join(folder, file), "utf8"), { strict: true }) as Workflow,
}));
function workflowIn(file: string): Workflow {
  const found = workflows.find((each) => each.file === file);
  if (!found) throw new Error(`there is no ${file}`);
  return found.workflow;
}
const jobIn = (file: string, job: string) => workflowIn(file).jobs[job] as Job;
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);
const scriptsOf = (workflow: Workflow) => stepsOf(workflow).flatMap(({ run }) => run ?? []);

/** As a workflow writes it. */
const expression = (text: string) => `\${{ ${text} }}`;

const work = mkdtempSync(join(tmpdir(), "github-actions-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe.each(workflows)("$file", ({ workflow }) => {
  test("has no more rights than each of its jobs uses, and only the one that deploys can get credentials", () => {
    expect(workflow.permissions).toEqual({});
    for (const { permissions = {}, environment, steps } of Object.values(workflow.jobs)) {
      const readsRepository = steps.some(({ uses }) => uses?.startsWith("actions/checkout@"));
      const isDeploying = steps.some(({ run }) => run?.includes("cdk deploy"));
      expect(permissions).toEqual({
        ...(readsRepository && { contents: "read" }),
        ...(isDeploying && { "id-token": "write" }),
      });
      expect(environment !== undefined).toBe(isDeploying);
    }
  });

  test("uses actions of exact versions only", () => {
    for (const { uses } of stepsOf(workflow))
      if (uses) expect(uses).toMatch(/^[\w-]+\/[\w-]+@(v\d+\.\d+\.\d+|[0-9a-f]{40})$/);
  });

  test("puts nothing from outside into a script's text: values come as environment variables", () => {
    for (const run of scriptsOf(workflow)) expect(run).not.toMatch(/\$\{\{/);
  });

  test("knows no long-lived key of AWS", () => {
    expect(JSON.stringify(workflow)).not.toMatch(/AWS_SECRET|aws-secret-access-key|AWS_ACCESS_KEY/);
  });

  test("runs its scripts in bash that stops at the first error", () => {
    for (const job of Object.values(workflow.jobs)) expect(job.defaults.run.shell).toBe("bash");
  });

  test("calls commands that exist", () => {
    const { scripts, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const text = scriptsOf(workflow).join("\n");
    for (const [, name = ""] of text.matchAll(/npm run (?:--silent )?([\w-]+)/g)) expect(scripts).toHaveProperty(name);
    if (text.includes("npx cdk")) expect(devDependencies).toHaveProperty("aws-cdk");
    for (const script of scriptsOf(workflow)) execFileSync("bash", ["-n"], { input: script });
  });

  test("calls endpoints that exist", () => {
    const calls = scriptsOf(workflow).flatMap((run) => [...run.matchAll(/\bapi (GET|POST|PATCH|DELETE) "([^"]+)"/g)]);
    const known = endpoints.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`);
    for (const [, method, path = ""] of calls) {
      const full = path.replace("$webhooks", "/v1/projects/$PROJECT/webhooks").replaceAll(/\$\w+/g, "{}");
      expect(known).toContain(`${method} ${full}`);
    }
  });
});

/** Runs a step's script as GitHub does. https://docs.github.com/actions/reference/workflow-syntax-for-github-actions#jobsjob_idstepsshell */
async function runStep(step: Step | undefined, env: Record<string, string>, cwd = work) {
  if (!step?.run) throw new Error("there is no such step");
  const file = join(cwd, `${randomUUID()}.sh`);
  writeFileSync(file, step.run);
  const options = { cwd, env: { PATH: process.env.PATH, HOME: work, ...env } };
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

const has = (program: string) => {
  try {
    return execFileSync(program, ["--version"], { stdio: "pipe" }).length > 0;
  } catch {
    return false;
  }
};
const isComplete = ["bash", "curl", "jq"].every(has);

(isComplete ? describe : describe.skip)("use-the-api.yml, run (needs bash, curl and jq)", () => {
  const { steps, env: jobEnv } = jobIn("use-the-api.yml", "webhooks");
  const step = (id: string) => steps.find((each) => each.id === id);

  let service: TestService;
  let user: ReturnType<TestService["user"]>;
  let project: string;
  let key: string;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());
  beforeEach(async () => {
    user = service.user();
    project = await service.project(user.userId);
    key = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data.key;
    writeFileSync(join(work, "output"), "");
  });

  const receiver = "https://pr-7.preview.example.com/hooks/deployments";
  const webhooks = async () => (await user.api.get(`/v1/projects/${project}/webhooks`)).body.data;
  const output = () => readFileSync(join(work, "output"), "utf8");

  /** Runs the named steps, in a job that a spoiling proxy may stand in front of. */
  async function runJob(ids: string[], { spoil, env = {} }: { spoil?: Spoil; env?: Record<string, string> } = {}) {
    const proxy = await startSpoilingProxy(service.baseUrl, spoil);
    const values = {
      API_KEY: key,
      API_URL: proxy.url,
      PROJECT: project,
      RECEIVER: receiver,
      RUNNER_TEMP: work,
      GITHUB_OUTPUT: join(work, "output"),
      ...env,
    };
    try {
      let printed = "";
      for (const id of ["api", ...ids]) {
        const { code, output: text } = await runStep(step(id), values);
        printed += text;
        if (code !== 0) return { code, printed, asked: proxy.asked };
      }
      return { code: 0, printed, asked: proxy.asked };
    } finally {
      await proxy.close();
    }
  }

  /** What a job's log shows: of a line with a command to the runner, nothing. */
  const logOf = (printed: string) => printed.replaceAll(/^::add-mask::.*$/gm, "");

  test("the steps know all that they are given", () => {
    expect(Object.keys(jobEnv).sort()).toEqual(["API_KEY", "API_URL", "PROJECT", "RECEIVER"]);
    expect(jobEnv.API_KEY).toBe(expression("secrets.PLATFORM_API_KEY"));
  });

  test("webhooks are made while a pull request is open, and deleted when it is closed", () => {
    expect(step("create")?.if).toBe("github.event_name == 'pull_request' && github.event.action != 'closed'");
    expect(step("delete")?.if).toBe("github.event_name == 'pull_request' && github.event.action == 'closed'");
    expect(workflowIn("use-the-api.yml").on.pull_request).toEqual({
      types: ["opened", "reopened", "synchronize", "closed"],
    });
  });

  test("lists the project's webhooks, and warns of one that is disabled", async () => {
    const path = `/v1/projects/${project}/webhooks`;
    const url = "https://hooks.example.com/a?b=$(c)&d=*";
    const { id } = (await user.api.post(path, { url, events: ["deploy.started", "deploy.failed"] })).body.data;
    const { code, printed } = await runJob(["list"]);
    expect({ code, printed }).toEqual({ code: 0, printed: `${id}  ${url}  deploy.started, deploy.failed\n` });
    await user.api.patch(`${path}/${id}`, { enabled: false });
    expect((await runJob(["list"])).printed).toContain(`::warning::${url} is disabled: manual`);
  });

  test("gives the preview a webhook, with a secret that only the next step sees", async () => {
    const { code, printed } = await runJob(["list", "create"]);
    expect(code).toBe(0);
    const [webhook] = await webhooks();
    expect(webhook).toMatchObject({ url: receiver, events: ["deploy.succeeded", "deploy.failed"], enabled: true });
    const secret = /^secret=(whsec_[0-9a-f]{64})\n$/.exec(output())?.[1];
    expect(printed).toContain(`::add-mask::${secret}\n`);
    expect(logOf(printed)).not.toContain("whsec_");
    expect(printed).not.toContain(key);
    expect(printed).toContain(`${webhook.id} sends to ${receiver}`);
  });

  test("run again, it keeps that webhook and has a new secret", async () => {
    await runJob(["create"]);
    const first = output();
    const [before] = await webhooks();
    const { code } = await runJob(["create"]);
    expect(code).toBe(0);
    expect(await webhooks()).toEqual([before]);
    expect(output().startsWith(first)).toBe(true);
    expect(output().slice(first.length)).toMatch(/^secret=whsec_/);
    expect(output().slice(first.length)).not.toBe(first);
  });

  test("deletes the preview's webhook and no other; deleted already is well", async () => {
    const other = { url: "https://pr-77.preview.example.com/hooks/deployments", events: ["deploy.failed"] };
    const { id } = (await user.api.post(`/v1/projects/${project}/webhooks`, other)).body.data;
    await runJob(["create"]);
    const { code, printed } = await runJob(["delete"]);
    expect(code).toBe(0);
    expect(printed).toMatch(/^[0-9a-f-]{36} deleted\n$/);
    expect(await webhooks()).toEqual([expect.objectContaining({ id })]);
    expect(await runJob(["delete"])).toMatchObject({ code: 0, printed: "" });
  });

  test.each(["list", "create", "delete"])("%s fails with the error's code and request id", async (id) => {
    const { code, printed } = await runJob([id], { env: { API_KEY: `svc_${"0".repeat(64)}` } });
    expect(code).not.toBe(0);
    expect(printed).toMatch(
      /^::error::GET \/v1\/projects\/\S+ was answered 401: invalid_api_key, request id [0-9a-f-]{36}: The API key/m,
    );
    expect(output()).toBe("");
  });

  test("an answer that is not the API's fails too, and commands to the runner in it are not obeyed", async () => {
    const body = '{"error":{"code":"x","message":"a\\n::add-mask::b","request_id":"r"}}';
    const injected = await runJob(["list"], { spoil: { instead: () => ({ status: 500, headers: {}, body }) } });
    expect(injected).toMatchObject({
      code: 1,
      printed: expect.stringMatching(/^::error::.* 500: x, request id r: a ::add-mask::b\n$/),
    });
    const html = await runJob(["list"], { spoil: { instead: () => ({ status: 502, headers: {}, body: "<html>" }) } });
    expect(html).toMatchObject({
      code: 1,
      printed: expect.stringContaining("answered 502: which is no answer of the API"),
    });
  });

  const busy = (status: number, code: string) => ({
    status,
    headers: { "Retry-After": "1" },
    body: JSON.stringify({ error: { code, message: "Wait.", request_id: "r" } }),
  });

  test.each([
    [429, "rate_limited"],
    [503, "service_unavailable"],
  ])("%i is asked again after Retry-After", async (status, code) => {
    const times: number[] = [];
    const instead = () => (times.push(Date.now()) === 1 ? busy(status, code) : undefined);
    expect(await runJob(["list"], { spoil: { instead } })).toMatchObject({ code: 0 });
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("busy for good, it fails in bounded time", async () => {
    const { code, printed, asked } = await runJob(["list"], { spoil: { instead: () => busy(429, "rate_limited") } });
    expect(code).toBe(1);
    expect(asked).toHaveLength(5);
    expect(printed).toContain("was answered 429: rate_limited, request id r");
  });

  test("a create answered 503 that was done all the same does not make a second webhook", async () => {
    let isFirst = true;
    const answer = (answered: { status: number; body: string }, { method }: Asked) => {
      if (method !== "POST" || !isFirst) return;
      isFirst = false;
      Object.assign(answered, busy(503, "service_unavailable"));
    };
    const { code, asked } = await runJob(["create"], { spoil: { answer } });
    expect(code).toBe(0);
    expect(await webhooks()).toHaveLength(1);
    expect(output()).toMatch(/^secret=whsec_[0-9a-f]{64}\n$/);
    expect(
      asked.map(({ method, path }) => `${method} ${path.replace(/^.*webhooks/, "").replace(/[0-9a-f-]{36}/, "<id>")}`),
    ).toEqual(["GET ", "POST ", "GET ", "POST /<id>/rotate-secret"]);
  });
});

describe("deploy.yml", () => {
  const { steps, environment, env } = jobIn("deploy.yml", "deploy");
  const step = (id: string) => steps.find((each) => each.id === id);
  const workflow = workflowIn("deploy.yml");

  test("deploys stages that exist, each in its environment, one at a time", () => {
    const stage = expression("inputs.stage || 'dev'");
    const { inputs } = workflow.on.workflow_dispatch as { inputs: { stage: { options: string[] } } };
    expect(inputs.stage.options).toEqual(stages.map(({ name }) => name));
    expect([environment, env.STAGE]).toEqual([stage, stage]);
    expect(workflow.concurrency).toEqual({ group: `deploy-${stage}`, "cancel-in-progress": false });
  });

  const orderOf = (job: Job) => job.steps.map(({ id, uses, run }) => id ?? uses?.split("@")[0] ?? run);

  test("tests where no credentials can be had, guards before it deploys, asks afterwards", () => {
    expect(orderOf(jobIn("deploy.yml", "test"))).toEqual([
      "actions/checkout",
      "actions/setup-node",
      "npm install --no-audit --no-fund",
      "npm test",
    ]);
    const deploy = jobIn("deploy.yml", "deploy");
    expect(deploy.needs).toBe("test");
    expect(orderOf(deploy)).toEqual([
      "actions/checkout",
      "actions/setup-node",
      "npm install --strict-allow-scripts --no-audit --no-fund",
      "aws-actions/configure-aws-credentials",
      "diff",
      "guard",
      "deploy",
      "sign-in",
      "smoke",
    ]);
    expect(step("deploy")?.run).toMatch(/^npx cdk deploy -c stage="\$STAGE" --require-approval never/);
  });

  test("says of every package with an install script whether it may run", () => {
    const { allowScripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
    const withScript = Object.entries<{ hasInstallScript?: true; os?: string[] }>(packages)
      .filter(([, { hasInstallScript, os }]) => hasInstallScript && (os === undefined || os.includes("linux")))
      .map(([path]) => path.replace(/^.*node_modules\//, ""));
    expect(withScript).toContain("esbuild");
    expect(withScript.filter((name) => !(name in allowScripts))).toEqual([]);
  });

  test("reads the base URL from an output that the stack has", async () => {
    writeFileSync(join(work, "outputs.json"), '{"deployment-webhooks-dev":{"ApiUrl":"http://127.0.0.1:1"}}');
    const smoke = {
      ...step("smoke"),
      run: step("smoke")?.run?.replace("npm run --silent smoke --", "echo"),
    } as Step;
    const RECEIVER = "https://hooks.example.com/";
    expect(await runStep(smoke, { STAGE: "dev", RECEIVER })).toEqual({
      code: 0,
      output: `--all --receiver ${RECEIVER} --url http://127.0.0.1:1\n`,
    });
    expect((await runStep(smoke, { STAGE: "prod" })).code).not.toBe(0);
    expect(readFileSync(join(root, "lib/service-stack.ts"), "utf8")).toContain('"ApiUrl"');
    expect(readFileSync(join(root, "bin/commands/app.ts"), "utf8")).toMatch(/`deployment-webhooks-\$\{stage\.name\}`/);
  });

  /* The guard, on what `cdk diff` really prints. */

  interface Parts {
    table?: { sortKey: string };
    queueName?: string;
    secretName?: string;
    key?: boolean;
    visibilitySeconds?: number;
  }

  let count = 0;
  function synth({ table, queueName = "q", secretName, key, visibilitySeconds = 30 }: Parts): string {
    count += 1;
    const app = new App({ analyticsReporting: false, outdir: join(work, `assembly-${count}`) });
    const stack = new Stack(app, "Stack");
    if (table) {
      const text = (name: string) => ({ name, type: dynamodb.AttributeType.STRING });
      const removalPolicy = RemovalPolicy.RETAIN;
      new dynamodb.TableV2(stack, "Table", { partitionKey: text("id"), sortKey: text(table.sortKey), removalPolicy });
    }
    new sqs.Queue(stack, "Queue", { queueName, visibilityTimeout: Duration.seconds(visibilitySeconds) });
    if (secretName) new secretsmanager.Secret(stack, "Secret", { secretName });
    if (key) new kms.Key(stack, "Key");
    app.synth();
    return app.outdir;
  }

  async function guard(before: Parts, after: Parts) {
    const [old, next] = [synth(before), synth(after)];
    const args = ["diff", "--app", next, "--template", join(old, "Stack.template.json"), "--no-color"];
    const options = { cwd: work, env: { ...process.env, HOME: work } };
    const { stdout, stderr } = await promisify(execFile)(join(root, "node_modules/.bin/cdk"), args, options);
    writeFileSync(join(work, "diff.txt"), stdout + stderr);
    return runStep(step("guard"), {});
  }

  const all: Parts = { table: { sortKey: "a" }, secretName: "a", key: true };

  test.each<[string, Parts, RegExp]>([
    [
      "a table whose key changes",
      { ...all, table: { sortKey: "b" } },
      /^\[~\] AWS::DynamoDB::GlobalTable .* replace$/m,
    ],
    ["a table that goes", { secretName: "a", key: true }, /^\[-\] AWS::DynamoDB::GlobalTable .* orphan$/m],
    ["a queue with another name", { ...all, queueName: "other" }, /^\[~\] AWS::SQS::Queue .* replace$/m],
    ["a secret with another name", { ...all, secretName: "b" }, /^\[~\] AWS::SecretsManager::Secret .* replace$/m],
    ["a key that goes", { ...all, key: false }, /^\[-\] AWS::KMS::Key .* orphan$/m],
  ])("the guard stops at %s", async (_, after, line) => {
    const { code, output } = await guard(all, after);
    expect(code).toBe(1);
    expect(output).toMatch(line);
    expect(output).toContain("::error::This would lose what is stored");
  });

  test.each<[string, Parts, Parts]>([
    ["nothing that changes", all, all],
    ["a queue that changes in place", all, { ...all, visibilitySeconds: 60 }],
    ["what is new", {}, all],
  ])("the guard lets %s pass", async (_, before, after) => {
    expect(await guard(before, after)).toEqual({ code: 0, output: "" });
  });

  test.each([
    ["may be replaced", "[~] AWS::SQS::Queue Queues/Events QueuesEvents12 may be replaced\n", 1],
    ["a policy of a queue", "[-] AWS::SQS::QueuePolicy Queues/Events/Policy QueuesPolicy12 destroy\n", 0],
    ["another kind of resource", "[~] AWS::Lambda::Version Api/Version ApiVersion12 replace\n", 0],
  ])("the guard knows %s", async (_, line, code) => {
    writeFileSync(join(work, "diff.txt"), `Stack\nResources\n${line}\n\n✨  Number of stacks with differences: 1\n`);
    expect((await runStep(step("guard"), {})).code).toBe(code);
  });

  test("the guard does not take a diff that failed for one without changes", async () => {
    writeFileSync(
      join(work, "diff.txt"),
      "Need to perform AWS calls for account 1, but no credentials have been configured\n",
    );
    expect(await runStep(step("guard"), {})).toEqual({
      code: 1,
      output: "::error::There is no complete diff to judge by.\n",
    });
  });
});

describe("deploying-from-github.md", () => {
  const page = readFileSync(join(root, "docs/deploying-from-github.md"), "utf8");
  const [trust, rights] = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = ""]) => JSON.parse(text));

  test("the role trusts one repository and one environment, exactly", () => {
    const [statement, ...others] = trust.Statement;
    expect(others).toEqual([]);
    expect(statement.Action).toBe("sts:AssumeRoleWithWebIdentity");
    expect(Object.keys(statement.Condition)).toEqual(["StringEquals"]);
    expect(statement.Condition.StringEquals).toEqual({
      "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
      "token.actions.githubusercontent.com:sub": "repo:<owner>/<repository>:environment:<stage>",
    });
  });

  test("the role may only take the roles of cdk bootstrap", () => {
    expect(rights.Statement).toEqual([
      {
        Effect: "Allow",
        Action: "sts:AssumeRole",
        Resource: "arn:aws:iam::<account>:role/cdk-hnb659fds-*-<account>-<region>",
      },
    ]);
  });

  test("names every variable and secret that the workflow takes", () => {
    const workflow = readFileSync(join(folder, "deploy.yml"), "utf8");
    const taken = [...workflow.matchAll(/\$\{\{ (vars|secrets)\.(\w+) \}\}/g)];
    expect(taken.length).toBeGreaterThan(3);
    for (const [, kind, name] of taken)
      expect(page).toContain(`| ${kind === "vars" ? "variable" : "secret"} | \`${name}\` |`);
  });
});
