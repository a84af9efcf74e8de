import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { type TableRow, tables } from "../../functions/foundation/manifest/tables.ts";
import { parse } from "../../functions/foundation/schema/input.ts";
import { suspensionInput } from "../../functions/webhooks/webhook/suspend.ts";
import { type Json, SynthesizedStack } from "../lib/synthesized.ts";
import { needs } from "../support/optional-program.ts";

/*
 * Runs the scripts and functions of docs/runbook/ with a stub of the AWS CLI (runbook/aws-stub.sh), which keeps the state of tables
 * and of a backup. The stub can reject a given call; no further call may follow then.
 */

const root = join(import.meta.dirname, "../..");
const script = (name: string) => join(root, "docs/runbook", name);

interface Result {
  code: number | null;
  stdout: string;
  stderr: string;
  calls: string[];
  /** The calls that change or wait for something, such as `delete-table`. */
  changes: string[];
  /** What the stub deleted or put. */
  written: string[];
}

interface RunOptions {
  /** Lines of bash that set the initial state and the variables of the stub. */
  setup?: string;
  /** Number of the call that is rejected, from 1; 0 = none. */
  failAt?: number;
}

/** Runs lines of bash with the stub in place of the AWS CLI. */
function run(lines: string, { setup = "", failAt = 0 }: RunOptions = {}): Result {
  const dir = mkdtempSync(join(tmpdir(), "runbook-"));
  const read = (name: string) =>
    existsSync(join(dir, name))
      ? readFileSync(join(dir, name), "utf8")
          .split("\n")
          .filter((line) => line !== "")
      : [];
  // The initial state is set once; functions and variables are defined whenever bash starts.
  writeFileSync(join(dir, "setup"), setup.replaceAll(/^will_be (\S+) (.*)$/gm, `[ -e "$DIR/$1" ] || will_be $1 $2`));
  const env = {
    PATH: process.env.PATH,
    BASH_ENV: join(import.meta.dirname, "runbook/aws-stub.sh"),
    DIR: dir,
    FAIL_AT: String(failAt),
    STAGE: "prod",
  };
  try {
    const { status, stdout, stderr } = spawnSync("bash", ["--norc", "-c", lines], {
      env,
      encoding: "utf8",
      timeout: 25_000,
      cwd: root,
    });
    const calls = read("calls");
    const changes = calls
      .map((call) => call.split(" ")[1] ?? "")
      .filter((verb) => !/^(describe|get|list|scan)/.test(verb));
    return { code: status, stdout, stderr, calls, changes, written: read("written") };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/**
 * Rejects each call in turn: it must be the last one, and the command must fail with a message. Of calls that only look again
 * whether a state has changed, the first is rejected.
 */
function expectToStopAtEachFailure(lines: string, setup: string, check: (result: Result) => void): void {
  const { calls } = run(lines, { setup });
  expect(calls.length).toBeGreaterThan(1);
  const positions = calls.flatMap((call, index) => (call === calls[index - 1] ? [] : index + 1));
  for (const failAt of positions) {
    const result = run(lines, { setup, failAt });
    expect({ failAt, last: result.calls.length, isFailed: result.code !== 0 }).toEqual({
      failAt,
      last: failAt,
      isFailed: true,
    });
    expect(result.stderr).not.toBe("");
    check(result);
  }
}

test.each([
  ["restore-table", "protect webhooks"],
  ["remove-failed-stack", "list"],
  ["set-throttle", "1 2"],
  ["replay-events", "2026-11-21T03:00:00Z"],
  ["suspend-project", "suspend project-1"],
  ["remove-user", "list user-1"],
])("%s.sh calls nothing with other arguments, and nothing without a stage", (name, args) => {
  for (const wrong of ["", "unknown", "a b c d"]) {
    const { code, stdout, stderr, calls } = run(`${script(`${name}.sh`)} ${wrong}`);
    expect({ code, stdout, calls }).toEqual({ code: 2, stdout: "", calls: [] });
    expect(stderr).toMatch(new RegExp(`^Usage: STAGE=prod docs/runbook/${name}\\.sh `));
  }
  const { code, calls, stderr } = run(`unset STAGE; ${script(`${name}.sh`)} ${args}`);
  expect({ isFailed: code !== 0, calls }).toEqual({ isFailed: true, calls: [] });
  expect(stderr).toContain("Set the stage first, for example: export STAGE=prod");
});

test("restoring a table waits until it is active", () => {
  const { code, calls, stderr } = run(`${script("restore-table.sh")} restore webhooks 2026-11-21T03:00:00Z`);
  expect({ code, first: calls[0] }).toEqual({
    code: 0,
    first:
      "dynamodb restore-table-to-point-in-time --source-table-name deployment-webhooks-prod-webhooks --target-table-name deployment-webhooks-prod-webhooks-restored --restore-date-time 2026-11-21T03:00:00Z",
  });
  expect(stderr.split("\n").map((line) => line.replace(/^[\d:]+ /, ""))).toEqual([
    "table_state deployment-webhooks-prod-webhooks-restored: CREATING",
    "table_state deployment-webhooks-prod-webhooks-restored: ACTIVE",
    "",
  ]);
});

describe("replacing a table", () => {
  const replace = `${script("restore-table.sh")} replace webhooks`;
  const setup = "will_be table-deployment-webhooks-prod-webhooks ACTIVE";
  const afterDeletion = [
    "restore-table-from-backup",
    "update-table",
    "update-continuous-backups",
    "detect-stack-drift",
  ];

  test("backs it up, deletes it, restores it and protects it, each step after the previous one is complete", () => {
    const { code, changes, written, stderr } = run(replace, { setup });
    expect(code).toBe(0);
    expect(changes).toEqual(["create-backup", "update-table", "delete-table", ...afterDeletion]);
    expect(written).toEqual(["deleted deployment-webhooks-prod-webhooks while the backup was AVAILABLE"]);
    const states = stderr.split("\n").map((line) => line.replace(/^[\d:]+ /, ""));
    expect(states.filter((line) => line.includes("backup_state"))).toEqual([
      "backup_state arn:backup: CREATING",
      "backup_state arn:backup: CREATING",
      "backup_state arn:backup: AVAILABLE",
    ]);
  });

  test("stops at the first error, and never deletes the table without a backup", () => {
    expectToStopAtEachFailure(replace, setup, ({ written }) => {
      for (const line of written)
        expect(line).toBe("deleted deployment-webhooks-prod-webhooks while the backup was AVAILABLE");
    });
  });

  test.each([
    ["was deleted", "will_be backup CREATING DELETED"],
    ["belongs to another table", "will_be backup False"],
  ])("does not delete the table when the backup %s", (_, backup) => {
    const { code, changes, written } = run(replace, { setup: `${setup}\n${backup}` });
    expect({ code, changes, written }).toEqual({ code: 1, changes: ["create-backup"], written: [] });
    const again = run(`${replace} arn:backup`, { setup: `${setup}\nwill_be backup False` });
    expect({ code: again.code, changes: again.changes }).toEqual({ code: 1, changes: [] });
    expect(again.stderr).toContain(
      "There is no available backup of deployment-webhooks-prod-webhooks-restored: nothing is deleted.",
    );
  });

  test("waits longer than the waiters of the AWS CLI do", () => {
    const states = [...Array(80).fill("CREATING"), "AVAILABLE"].join(" ");
    expect(run(replace, { setup: `${setup}\nwill_be backup ${states}` }).changes).toContain("delete-table");
  });

  test("prints the command that continues after a failure", () => {
    const isDeletion = (call: string) => call.startsWith("dynamodb delete-table");
    const failAt = run(replace, { setup }).calls.findIndex(isDeletion) + 1;
    expect(run(replace, { setup, failAt }).stderr).toContain(
      "To continue: docs/runbook/restore-table.sh replace webhooks arn:backup\n",
    );
    const isProtection = (call: string) => call.startsWith("dynamodb update-continuous-backups");
    const late = run(replace, { setup }).calls.findIndex(isProtection) + 1;
    expect(run(replace, { setup, failAt: late }).stderr).toContain(
      "To continue: docs/runbook/restore-table.sh protect webhooks\n",
    );
  });

  test("continues with a backup when the table is deleted or being deleted, not when it is being restored", () => {
    const continueWith = (states: string) =>
      run(`${replace} arn:backup`, {
        setup: `will_be backup AVAILABLE\nwill_be table-deployment-webhooks-prod-webhooks ${states}`,
      });
    expect(continueWith("GONE")).toMatchObject({ code: 0, changes: afterDeletion, written: [] });
    expect(continueWith("DELETING DELETING GONE")).toMatchObject({ code: 0, changes: afterDeletion, written: [] });
    expect(continueWith("CREATING CREATING ACTIVE")).toMatchObject({ code: 1, changes: ["update-table"], written: [] });
  });

  test.each(Object.values<TableRow>(tables))("sets the time to live of $name, if it has one", ({ name, ttl }) => {
    const protect = `${script("restore-table.sh")} protect ${name}`;
    const { code, changes, calls } = run(protect, { setup: `will_be table-deployment-webhooks-prod-${name} ACTIVE` });
    expect({ code, changes }).toEqual({
      code: 0,
      changes: [
        "update-table",
        "update-continuous-backups",
        ...(ttl === undefined ? [] : ["update-time-to-live"]),
        ...(name === "webhook-secrets" ? ["put-resource-policy"] : []),
      ],
    });
    if (ttl !== undefined) expect(calls.join(" ")).toContain(`Enabled=true,AttributeName=${ttl}`);
  });
});

describe("the policy of the table of signing secrets", () => {
  const table = "deployment-webhooks-prod-webhook-secrets";
  const arn = (suffix: string) => `ACTIVE${suffix}`; // The stub prints the state instead of the ARN.
  const setup = (policy: string) => `will_be table-${table} ACTIVE
extra() {
  case "$1 $2" in
    "dynamodb get-resource-policy") option --resource-arn "$@"; ${policy} ;;
    "dynamodb put-resource-policy") echo "$*" >> "$DIR/written" ;;
  esac
}`;
  const found = 'echo "{\\"Resource\\":[\\"$value\\",\\"$value/index/*\\"]}"';
  const written = (suffix: string) => [
    `dynamodb put-resource-policy --resource-arn ${arn(suffix)} --policy {"Resource":["${arn(suffix)}","${arn(suffix)}/index/*"]}`,
  ];

  test.each([
    ["a restored copy gets that of the table", "restore webhook-secrets 2026-11-21T03:00:00Z", "-restored"],
    ["a table that was replaced gets that of the copy", "protect webhook-secrets", ""],
  ])("%s, for its own ARN", (_, command, suffix) => {
    const result = run(`${script("restore-table.sh")} ${command}`, { setup: setup(found) });
    expect(result).toMatchObject({ code: 0, written: written(suffix) });
  });

  test("the break-glass role may make every call that replaces the table", () => {
    const result = run(`${script("restore-table.sh")} replace webhook-secrets`, {
      setup: `will_be table-${table} ACTIVE\n${setup(found)}`,
    });
    expect(result.code).toBe(0);
    // The policy of docs/runbook.md allows dynamodb:* on the table and its copies.
    expect(result.calls.filter((call) => !call.startsWith("dynamodb "))).toEqual([]);
    expect(result.calls.join("\n")).toContain("put-resource-policy");
    expect(result.stderr).toContain("aws cloudformation detect-stack-drift --stack-name deployment-webhooks-prod\n");
  });

  test("is missed with a message when there is none to copy", () => {
    const command = `${script("restore-table.sh")} restore webhook-secrets 2026-11-21T03:00:00Z`;
    const { code, stderr } = run(command, { setup: setup("aws_error PolicyNotFoundException") });
    expect(code).toBe(1);
    expect(stderr).toContain(`${table}-restored has no policy: everyone who may read DynamoDB can read its secrets.`);
  });
});

needs("jq").describe("copying rows back", () => {
  const putItem = `
extra() {
  case "$1 $2" in
    "dynamodb scan") echo "$ROWS"; [ -z "$SCAN_FAILS" ] || aws_error ExpiredTokenException ;;
    "dynamodb put-item")
      item=$(cat)
      case $item in
        *existing*) aws_error ConditionalCheckFailedException ;;
        *slow*) aws_error ProvisionedThroughputExceededException ;;
        *denied*) aws_error AccessDeniedException ;;
        *) echo "$item" >> "$DIR/written" ;;
      esac ;;
  esac
}`;
  const copy = (ids: string[], more = "") => {
    const rows = JSON.stringify({ Items: ids.map((id) => ({ project_id: { S: id }, text: { S: "a\\nb 'c'" } })) });
    return run(`${script("restore-table.sh")} copy-rows webhooks project_id`, {
      setup: `${putItem}\nROWS=${quoted(rows)}\n${more}`,
    });
  };
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

  test("puts missing rows unchanged and keeps existing ones", () => {
    const { code, stdout, calls, written } = copy(["new-1", "existing", "new-2"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "copied 2, already there 1, failed 0\n" });
    expect(written.map((line) => JSON.parse(line))).toEqual(
      ["new-1", "new-2"].map((id) => ({ project_id: { S: id }, text: { S: "a\\nb 'c'" } })),
    );
    const puts = calls.filter((call) => call.startsWith("dynamodb put-item"));
    for (const call of puts) expect(call).toContain("--condition-expression attribute_not_exists(project_id)");
  });

  test("counts rows that could not be put, prints the errors, and continues", () => {
    const { code, stdout, stderr } = copy(["new", "slow", "denied", "existing", "new"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "copied 2, already there 1, failed 2\n" });
    expect(stderr).toContain("ProvisionedThroughputExceededException");
    expect(stderr).toContain("AccessDeniedException");
    expect(stderr).not.toContain("ConditionalCheckFailed");
    expect(stderr).toContain("Not all rows of deployment-webhooks-prod-webhooks-restored were copied");
  });

  test("fails when not all rows could be read", () => {
    const { code, stderr } = copy(["new"], "SCAN_FAILS=1");
    expect(code).toBe(1);
    expect(stderr).toContain("Not all rows of deployment-webhooks-prod-webhooks-restored were copied");
  });
});

describe("removing a failed first deployment", () => {
  const remove = `${script("remove-failed-stack.sh")} remove`;
  const leftovers = [
    "AWS::ApiGateway::Account Api",
    "AWS::DynamoDB::Table deployment-webhooks-prod-webhooks",
    "AWS::IAM::Role deployment-webhooks-prod-ApiCloudWatchRole",
    "AWS::KMS::Key 1234",
  ];

  test("concerns the types that a rollback leaves in a stage that keeps data", () => {
    const stack = new SynthesizedStack("prodWithKey");
    const left = Object.values<Json>(stack.template.Resources).filter(
      ({ DeletionPolicy }) => DeletionPolicy === "Retain",
    );
    expect([...new Set(left.map(({ Type }) => Type))].sort()).toEqual(leftovers.map((line) => line.split(" ")[0]));
  });

  const setup = String.raw`
STATE=ROLLBACK_COMPLETE ITEMS=0
extra() {
  case "$1 $2" in
    "cloudformation describe-stacks") echo "$STATE" ;;
    "cloudformation list-stack-resources") printf '%s\n' ${leftovers.map((line) => `"${line.replace(" ", "\t")}"`).join(" ")} ;;
    "dynamodb scan") [ "$ITEMS" = gone ] && aws_error ResourceNotFoundException || echo "$ITEMS" ;;
  esac
}
will_be table-deployment-webhooks-prod-webhooks ACTIVE`;
  const isDestructive = (verb: string) => /^(delete|update)/.test(verb);

  test("lists what is left, and changes nothing", () => {
    const { code, stdout, changes } = run(`${script("remove-failed-stack.sh")} list`, { setup });
    expect({ code, changes }).toEqual({ code: 0, changes: [] });
    expect(stdout.trim().split("\n")).toEqual(leftovers.map((line) => line.replace(" ", "\t")));
  });

  test("deletes everything if it is empty, deletion protection first, the stack last", () => {
    const { code, changes, stdout, calls } = run(remove, { setup });
    expect(code).toBe(0);
    expect(changes).toEqual(["update-table", "delete-table", "update-termination-protection", "delete-stack", "wait"]);
    expect(calls).toContain(
      "dynamodb update-table --table-name deployment-webhooks-prod-webhooks --no-deletion-protection-enabled",
    );
    const kept = leftovers.filter((line) => !line.startsWith("AWS::DynamoDB::Table"));
    expect(stdout).toBe(kept.map((line) => `Not deleted: ${line}\n`).join(""));
  });

  test.each([
    ["a table has an item", "ITEMS=1", "deployment-webhooks-prod-webhooks is not empty: nothing is deleted."],
    ["the size of a table is unknown", "ITEMS=None", "None"],
    ["the stack is live", "STATE=UPDATE_COMPLETE", "deployment-webhooks-prod is UPDATE_COMPLETE"],
    ["an update was rolled back", "STATE=UPDATE_ROLLBACK_COMPLETE", "is UPDATE_ROLLBACK_COMPLETE"],
    ["the deployment can continue", "STATE=CREATE_FAILED", "is CREATE_FAILED"],
  ])("deletes nothing if %s", (_, change, message) => {
    const { code, changes, stderr } = run(remove, { setup: `${setup}\n${change}` });
    expect({ code, destructive: changes.filter(isDestructive) }).toEqual({ code: 1, destructive: [] });
    expect(stderr).toContain(message);
  });

  test("succeeds at the second run, when some resources do not exist any more", () => {
    const gone = "ITEMS=gone\nwill_be table-deployment-webhooks-prod-webhooks GONE";
    const { code, changes } = run(remove, { setup: `${setup.replace(/^will_be.*$/m, "")}\n${gone}` });
    expect(code).toBe(0);
    expect(changes).not.toContain("delete-table");
    expect(changes.at(-2)).toBe("delete-stack");
  });

  test("stops at the first error", () => {
    expectToStopAtEachFailure(remove, setup, () => {});
  });
});

describe("replaying events", () => {
  const SINCE = "2026-11-21T03:00:00Z";
  const replay = `${script("replay-events.sh")} ${SINCE}`;
  /** The stub answers each call of the function with the next line of `answers`, and prints `FunctionError`. */
  const setup = String.raw`
extra() {
  case "$1 $2" in
    "cloudformation describe-stacks") echo replay-function ;;
    "dynamodb scan") printf 'p-2\tp-1\np-2\n' ;;
    "lambda invoke") invoke_next "$@" ;;
  esac
}`;
  const answer = (next_cursor: string | null) =>
    JSON.stringify({ events: 2, deliveries: 1, unreadable: 0, next_cursor, complete: next_cursor === null });
  const answers = (...lines: string[]) => `${setup}\nwill_be answers ${lines.map((line) => `'${line}'`).join(" ")}`;
  const payloads = ({ written }: Result) => written.map((line) => JSON.parse(line));

  test("calls the function for each project with webhooks once, and prints its answers", () => {
    const result = run(replay, { setup: answers(answer(null)) });
    expect({ code: result.code, stdout: result.stdout }).toEqual({
      code: 0,
      stdout: `p-1 ${answer(null)}\np-2 ${answer(null)}\n`,
    });
    expect(payloads(result)).toEqual([
      { project_id: "p-1", since: SINCE },
      { project_id: "p-2", since: SINCE },
    ]);
    for (const call of result.calls.filter((each) => each.startsWith("lambda"))) {
      expect(call).toContain("--function-name replay-function");
      expect(call).toContain("--payload fileb:///dev/stdin");
    }
  });

  test("continues with the cursor of the answer until it is complete, for one project only", () => {
    const result = run(`${replay} p-9`, { setup: answers(answer("c-1"), answer("c-2"), answer(null)) });
    expect(result.code).toBe(0);
    expect(payloads(result)).toEqual([
      { project_id: "p-9", since: SINCE },
      { project_id: "p-9", since: SINCE, cursor: "c-1" },
      { project_id: "p-9", since: SINCE, cursor: "c-2" },
    ]);
  });

  test.each([
    ["fails", '{"errorType":"Error","errorMessage":"because"}'],
    ["returns something else", "{}"],
  ])("goes on with the next project when the function %s, and exits with 1", (_, failed) => {
    const result = run(replay, { setup: answers(failed, answer(null)) });
    expect(result.code).toBe(1);
    expect(result.stderr).toBe("Project p-1 is not complete. Run the command again with this project.\n");
    expect(result.stdout).toBe(`p-1 ${failed}\np-2 ${answer(null)}\n`);
  });

  test("exits with 1 when a call of the function is rejected", () => {
    const { code, stderr } = run(`${replay} p-9`, { setup: answers(answer(null)), failAt: 2 });
    expect(code).toBe(1);
    expect(stderr).toContain("AccessDeniedException");
    expect(stderr).toContain("Project p-9 is not complete.");
  });
});

describe("suspending a project and removing a user", () => {
  const PROJECT = "01930000-0000-7000-8000-00000000d301";
  const WEBHOOK = "01930000-0000-7000-8000-00000000d302";
  /** The stub names a function after the output, and answers each call with the next line of `answers`. */
  const setup = String.raw`
extra() {
  case "$1 $2" in
    "cloudformation describe-stacks")
      case "$*" in *\'ProjectsSuspendFunctionName\'*) echo suspend ;; *\'ProjectsRemoveMemberFunctionName\'*) echo remove ;;
      *\'ApiKeysRevokeAllFunctionName\'*) echo revoke ;; esac ;;
    "dynamodb query") printf '%s\t%s\n' p-1 p-2 ;;
    "lambda invoke") invoke_next "$@" ;;
  esac
}`;
  const answers = (...lines: string[]) => `${setup}\nwill_be answers ${lines.map((line) => `'${line}'`).join(" ")}`;
  const invoked = ({ calls, written }: Result) =>
    calls
      .filter((call) => call.startsWith("lambda invoke"))
      .map((call, index) => [/--function-name (\w+)/.exec(call)?.[1], JSON.parse(written[index] ?? "")]);

  test.each([
    [`suspend ${PROJECT}`, { suspended: true }],
    [`resume ${PROJECT}`, { suspended: false }],
    [`suspend ${PROJECT} ${WEBHOOK}`, { suspended: true, webhook_id: WEBHOOK }],
  ])("%s calls the function and prints its answer", (args, input) => {
    const result = run(`${script("suspend-project.sh")} ${args}`, { setup: answers('{"webhooks":[]}') });
    expect(result).toMatchObject({ code: 0, stdout: '{"webhooks":[]}\n', stderr: "" });
    expect(invoked(result)).toEqual([["suspend", { project_id: PROJECT, ...input }]]);
    // The function takes what the script sends.
    expect(() => parse(suspensionInput, invoked(result)[0]?.[1])).not.toThrow();
  });

  test("a user's keys are deleted first, then the user is removed from each project", () => {
    const user = `a "quoted" \\ user|1`;
    const result = run(`${script("remove-user.sh")} remove '${user}'`, {
      setup: answers('{"revoked":2}', '{"removed":true}'),
    });
    expect(result).toMatchObject({
      code: 0,
      stdout: '{"revoked":2}\np-1 {"removed":true}\np-2 {"removed":true}\n',
    });
    expect(invoked(result)).toEqual([
      ["revoke", { user_id: user }],
      ["remove", { user_id: user, project_id: "p-1" }],
      ["remove", { user_id: user, project_id: "p-2" }],
    ]);
    const query = result.calls.find((call) => call.startsWith("dynamodb query"));
    expect(query).toContain(`--table-name deployment-webhooks-prod-projects`);
    expect(query).toContain(`--expression-attribute-values {":user":{"S":${JSON.stringify(user)}}}`);
  });

  test("a project from which the user cannot be removed does not stop the others, and the script exits with 1", () => {
    const failed = '{"errorType":"Error"}';
    const result = run(`${script("remove-user.sh")} remove user-1`, {
      setup: answers('{"revoked":0}', failed, '{"removed":true}'),
    });
    expect(result).toMatchObject({
      code: 1,
      stdout: `{"revoked":0}\np-1 ${failed}\np-2 {"removed":true}\n`,
      stderr: "invoke: remove failed.\n",
    });
  });

  test("the projects of a user are listed, and nothing is changed", () => {
    const { code, stdout, changes } = run(`${script("remove-user.sh")} list user-1`, { setup });
    expect({ code, stdout, changes: changes.filter((verb) => verb !== "query") }).toEqual({
      code: 0,
      stdout: "p-1\np-2\n",
      changes: [],
    });
  });

  test("nothing is invoked when the stack does not have the function", () => {
    const { code, stderr, calls } = run(`${script("remove-user.sh")} remove user-1`);
    expect({ code, calls: calls.length }).toEqual({ code: 1, calls: 1 });
    expect(stderr).toContain("deployment-webhooks-prod has no output ApiKeysRevokeAllFunctionName.");
  });

  test("the user stays a member while keys could not be deleted", () => {
    const result = run(`${script("remove-user.sh")} remove user-1`, { setup: answers('{"errorType":"Error"}') });
    expect(result.code).toBe(1);
    expect(invoked(result)).toHaveLength(1);
  });

  test("a rejected call ends the scripts with 1 and a message", () => {
    const suspend = `${script("suspend-project.sh")} suspend ${PROJECT}`;
    expectToStopAtEachFailure(suspend, answers("{}"), ({ stdout }) => expect(stdout).toBe(""));
    for (const failAt of [1, 2, 3]) {
      const { code, calls, stderr } = run(`${script("remove-user.sh")} remove user-1`, {
        setup: answers("{}"),
        failAt,
      });
      expect({ isFailed: code !== 0, calls: calls.length }).toEqual({ isFailed: true, calls: failAt });
      expect(stderr).toContain("AccessDeniedException");
    }
  });
});

describe("ask", () => {
  const setup = String.raw`
extra() {
  case "$1 $2" in
    "cloudformation list-stack-resources") printf '%s\n' "$LOG_GROUPS" ;;
    "logs start-query") echo query-1 ;;
    "logs get-query-results")
      case "$*" in *"--query status"*) next status && echo "$state" ;; *) echo "a row" ;; esac ;;
  esac
}
LOG_GROUPS=deployment-webhooks-prod-AccessLog1
will_be status Scheduled Running Running Complete`;
  const ask = `. docs/runbook/tools.sh; ask AccessLog 30 'limit 5'`;

  test("waits for the query and prints its rows", () => {
    const { code, stdout, stderr, calls } = run(ask, { setup });
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "a row\n", stderr: "" });
    expect(calls[1]).toContain("--log-group-name deployment-webhooks-prod-AccessLog1");
    const [, start = 0, end = 0] = /--start-time (\d+) --end-time (\d+)/.exec(calls[1] ?? "")?.map(Number) ?? [];
    expect(end - start).toBe(30 * 60);
  });

  test("fails with a message at every error of the AWS CLI", () => {
    expectToStopAtEachFailure(ask, setup, ({ stdout }) => expect(stdout).toBe(""));
  });

  test("fails with a message when the query failed", () => {
    const { code, stdout, stderr } = run(ask, { setup: setup.replace("Complete", "Failed") });
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "",
      stderr: "ask: the query did not complete: Failed\n",
    });
  });
});

test("mappings prints the mapping of each queue, and stops at every error of the AWS CLI", () => {
  const mappings = ". docs/runbook/tools.sh; mappings";
  const setup = `extra() {
  case "$1 $2" in
    "cloudformation list-stack-resources") echo $'uuid-1\\tuuid-2' ;;
    "lambda get-event-source-mapping") echo "$4 Enabled" ;;
  esac
}`;
  expect(run(mappings, { setup })).toMatchObject({ code: 0, stdout: "uuid-1 Enabled\nuuid-2 Enabled\n" });
  expectToStopAtEachFailure(mappings, setup, () => {});
});

test("call passes the credential through stdin, so that no list of processes shows it", () => {
  const curl = `curl() { echo "$*"; cat; }`;
  const { stdout } = run(
    `. docs/runbook/tools.sh; ${curl}; KEY=svc_secret; call --include https://api.example.com/v1/projects`,
  );
  const [args, config] = stdout.split("\n");
  expect(args).toBe("--config - --silent --show-error --include https://api.example.com/v1/projects");
  expect(config).toBe('header = "Authorization: Bearer svc_secret"');
  expect(readFileSync(join(root, "docs/runbook.md"), "utf8")).not.toMatch(/Bearer \$\{?(KEY|TOKEN)/);
});

describe("setting the throttle", () => {
  const setup = `extra() { case "$1 $2" in "cloudformation list-stack-resources") echo api-1 ;; esac; }`;

  /** Returns the values that the script sets, by their path in the stage. */
  function limitsAfter(args: string): Record<string, string> {
    const { code, calls } = run(`${script("set-throttle.sh")} ${args}`, { setup });
    expect({ code, count: calls.length }).toEqual({ code: 0, count: 2 });
    const [command = "", json = ""] = calls[1]?.split(" --patch-operations ") ?? [];
    expect(command).toBe("apigateway update-stage --rest-api-id api-1 --stage-name prod");
    const operations: { op: string; path: string; value: string }[] = JSON.parse(json);
    expect(new Set(operations.map(({ op }) => op))).toEqual(new Set(["replace"]));
    return Object.fromEntries(operations.map(({ path, value }) => [path.replaceAll("~1", "/"), value]));
  }

  const limit = (method: string, path: string, rate: number, burst: number) => ({
    [`/${path}/${method}/throttling/rateLimit`]: String(rate),
    [`/${path}/${method}/throttling/burstLimit`]: String(burst),
  });
  const own = (limitOf: (throttle: { requestsPerSecond: number; burst: number }) => [number, number]) =>
    Object.assign(
      {},
      ...endpointRows.map(({ method, path, throttle }) => throttle && limit(method, path, ...limitOf(throttle))),
    );

  test("to that of the stage keeps the lower throttles of endpoints", () => {
    const lower = own(({ requestsPerSecond, burst }) => [requestsPerSecond, burst]);
    expect(Object.keys(lower).length).toBeGreaterThan(0);
    expect(limitsAfter("1000 2000")).toEqual({ ...limit("*", "*", 1000, 2000), ...lower });
  });

  test("to zero closes every endpoint", () => {
    expect(limitsAfter("0 0")).toEqual({ ...limit("*", "*", 0, 0), ...own(() => [0, 0]) });
  });

  test("changes nothing where there is no API", () => {
    const missing = run(`${script("set-throttle.sh")} 0 0`);
    expect({ code: missing.code, calls: missing.calls.length }).toEqual({ code: 1, calls: 1 });
    expect(missing.stderr).toContain("deployment-webhooks-prod has no API here.");
  });
});

describe("stopping gradual deployments", () => {
  const stop = script("stop-gradual-deployments.sh");
  const setup = String.raw`
extra() {
  case "$1 $2" in
    "cloudformation list-stack-resources") echo application ;;
    "deploy list-deployment-groups") printf '%s\n' authorizer sender ;;
    "deploy list-deployments") echo "deployment-of-$6" ;;
    "deploy stop-deployment") [ "$4" != "$CANNOT_STOP" ] || aws_error DeploymentAlreadyCompletedException ;;
  esac
}`;

  test("stops and rolls back all that are in progress", () => {
    const { code, calls } = run(stop, { setup });
    expect(code).toBe(0);
    expect(calls.filter((call) => call.startsWith("deploy stop"))).toEqual([
      "deploy stop-deployment --deployment-id deployment-of-authorizer --auto-rollback-enabled",
      "deploy stop-deployment --deployment-id deployment-of-sender --auto-rollback-enabled",
    ]);
  });

  test("continues and fails when one cannot be stopped", () => {
    const { code, calls } = run(stop, { setup: `${setup}\nCANNOT_STOP=deployment-of-authorizer` });
    expect(code).toBe(1);
    expect(calls.filter((call) => call.startsWith("deploy stop"))).toHaveLength(2);
  });

  test("fails when the stack has none", () => {
    expect(run(stop).stderr).toContain("deployment-webhooks-prod has no gradual deployments here.");
  });
});
