import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/*
 * The runbook's snippets that destroy or wait for something are run, with an `aws` in the place of the real one that keeps
 * the state of tables and of a backup. It fails where it is told to: then nothing more may be asked of it.
 */

const root = join(import.meta.dirname, "../..");
const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
const blocks = [...runbook.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, code = ""]) => code);
function blockWith(text: string): string {
  const [found, ...others] = blocks.filter((code) => code.includes(text));
  if (found === undefined || others.length > 0) throw new Error(`the snippet with ${text} is not one`);
  return found;
}

/** `$DIR/<name>` holds what is still to be said, a line each; the last one is said for ever. */
const world = String.raw`
set +e
sleep() { :; }
option() { while [ $# -gt 1 ]; do shift; [ "$1" = "$WANTED" ] && { echo "$2"; return; }; done; }
next() {
  [ -e "$DIR/$1" ] || return 1
  head -n 1 "$DIR/$1"
  [ "$(wc -l < "$DIR/$1")" -gt 1 ] && sed -i 1d "$DIR/$1"
  return 0
}
will_be() { local name=$1; shift; printf '%s\n' "$@" > "$DIR/$name"; }
aws_error() { echo "An error occurred ($1) when calling the operation: because" >&2; return 254; }
aws() {
  echo "$*" >> "$DIR/calls"
  [ "$(wc -l < "$DIR/calls")" = "$FAIL_AT" ] && { aws_error AccessDeniedException; return; }
  local table state
  table=$(WANTED=--table-name option "$@")
  case "$1 $2" in
    "dynamodb describe-table")
      state=$(next "table-$table") && [ "$state" != GONE ] || { aws_error ResourceNotFoundException; return; }
      echo "$state" ;;
    "dynamodb create-backup") echo arn:backup; [ -e "$DIR/backup" ] || will_be backup CREATING CREATING AVAILABLE ;;
    "dynamodb describe-backup") next backup ;;
    "dynamodb update-table")
      [ "$(head -n 1 "$DIR/table-$table")" = ACTIVE ] || { aws_error ResourceInUseException; return; }
      will_be "table-$table" UPDATING ACTIVE ;;
    "dynamodb delete-table")
      echo "deleted $table while the backup was $(cat "$DIR/backup" 2> /dev/null)" >> "$DIR/deleted"
      will_be "table-$table" DELETING DELETING GONE ;;
    "dynamodb restore-table-from-backup")
      [ "$(WANTED=--backup-arn option "$@")" = arn:backup ] || { aws_error ValidationException; return; }
      will_be "table-$(WANTED=--target-table-name option "$@")" CREATING CREATING ACTIVE ;;
    "dynamodb restore-table-to-point-in-time") will_be "table-$(WANTED=--target-table-name option "$@")" CREATING ACTIVE ;;
    *) extra "$@" ;;
  esac
}
extra() { :; }
`;

interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
  calls: string[];
  /** What the calls were, without the looking: `delete-table`. */
  done: string[];
  deleted: string[];
}

/** Runs snippets in the world; the call `failAt`, counted from 1 once `before` is over, is refused. */
function run(script: string, { before = "", failAt = 0 }: { before?: string; failAt?: number } = {}): Ran {
  const dir = mkdtempSync(join(tmpdir(), "runbook-"));
  const lines = (name: string) => {
    const { stdout } = spawnSync("cat", [join(dir, name)], { encoding: "utf8" });
    return stdout.split("\n").filter((line) => line !== "");
  };
  const text = `${world}\n${before}\n: > "$DIR/calls"\nFAIL_AT=${failAt}\n${script}`;
  const env = { PATH: process.env.PATH, DIR: dir, FAIL_AT: "0", STAGE: "prod", STACK: "deployment-webhooks-prod" };
  try {
    const { status, stdout, stderr } = spawnSync("bash", ["--norc", "-c", text], {
      env,
      encoding: "utf8",
      timeout: 25_000,
    });
    const calls = lines("calls");
    const done = calls
      .map((call) => call.split(" ")[1] ?? "")
      .filter((verb) => !/^(describe|get|list|scan)/.test(verb));
    return { code: status, stdout, stderr, calls, done, deleted: lines("deleted") };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Refuses each call of a script in turn, from the given one on: it must be the last, and the script must fail. */
function expectToStopAtEachFailure(script: string, before: string, check: (ran: Ran) => void, from = 1): void {
  const count = run(script, { before }).calls.length;
  expect(count).toBeGreaterThan(from);
  for (let failAt = from; failAt <= count; failAt += 1) {
    const ran = run(script, { before, failAt });
    expect({ failAt, last: ran.calls.length, isFailed: ran.code !== 0 }).toEqual({
      failAt,
      last: failAt,
      isFailed: true,
    });
    expect(ran.stderr).not.toBe("");
    check(ran);
  }
}

const has = (program: string) => spawnSync(program, ["--version"]).status === 0;
const restore = blockWith("until_is() {");

describe("a table that is put under its own name again", () => {
  const swapping = blockWith("swap() {");
  const steps = swapping.replace(/^back_up && .*$/m, "");
  const before = `${restore}\nwill_be table-prod-webhooks ACTIVE`;
  const swapped = ["restore-table-from-backup", "update-table", "update-continuous-backups", "detect-stack-drift"];

  test("is backed up, deleted, restored and protected, each once the one before is done", () => {
    const ran = run(swapping, { before });
    expect(ran.code).toBe(0);
    expect(ran.done).toEqual(["create-backup", "update-table", "delete-table", ...swapped]);
    expect(ran.deleted).toEqual(["deleted prod-webhooks while the backup was AVAILABLE"]);
    const statesSeen = ran.stderr.split("\n").map((line) => line.replace(/^[\d:]+ /, ""));
    expect(statesSeen.filter((line) => line.includes("backup_state"))).toEqual([
      "backup_state arn:backup: CREATING",
      "backup_state arn:backup: CREATING",
      "backup_state arn:backup: AVAILABLE",
    ]);
  });

  test("stops at whatever fails, and is never deleted without a backup", () => {
    expectToStopAtEachFailure(swapping, before, ({ deleted }) => {
      for (const line of deleted) expect(line).toBe("deleted prod-webhooks while the backup was AVAILABLE");
    });
  });

  test.each([
    ["that is no more", "will_be backup CREATING DELETED"],
    ["of another table", "will_be backup False"],
  ])("is not deleted with a backup %s", (_, backup) => {
    const ran = run(swapping, { before: `${before}\n${backup}` });
    expect({ code: ran.code, done: ran.done, deleted: ran.deleted }).toEqual({
      code: 1,
      done: ["create-backup"],
      deleted: [],
    });
    const again = run(`${steps}\nBACKUP=arn:backup\nswap`, { before: `${before}\nwill_be backup False` });
    expect({ code: again.code, done: again.done }).toEqual({ code: 1, done: [] });
    expect(again.stderr).toContain("There is no backup of prod-webhooks-restored: nothing is deleted.");
  });

  test("is not deleted when nothing was backed up", () => {
    const { code, calls, stderr } = run(`${steps}\nswap`, { before });
    expect({ isFailed: code !== 0, calls }).toEqual({ isFailed: true, calls: [] });
    expect(stderr).toContain("BACKUP: is set by back_up");
  });

  test("is waited for longer than the waiters of the AWS CLI do", () => {
    const hours = `for _ in $(seq 80); do echo CREATING; done > "$DIR/backup"; echo AVAILABLE >> "$DIR/backup"`;
    expect(run(swapping, { before: `${before}\n${hours}` }).done).toContain("delete-table");
  });

  test("goes on where it stopped: gone, going, and being restored", () => {
    const swap = (state: string) =>
      run(`${steps}\nBACKUP=arn:backup\nswap && protect`, {
        before: `${before}\nwill_be backup AVAILABLE\nwill_be table-prod-webhooks ${state}`,
      });
    const left = swapped.slice(0, -1);
    expect(swap("GONE")).toMatchObject({ code: 0, done: left, deleted: [] });
    expect(swap("DELETING DELETING GONE")).toMatchObject({ code: 0, done: left, deleted: [] });
    expect(swap("CREATING CREATING ACTIVE")).toMatchObject({ done: ["update-table"], deleted: [] });
  });

  test("has its time to live back when it is the deliveries", () => {
    const deliveries = `${before}\nTABLE=prod-deliveries\nwill_be table-prod-deliveries ACTIVE`;
    expect(run(`${steps}\nprotect`, { before: deliveries }).done).toEqual([
      "update-table",
      "update-continuous-backups",
      "update-time-to-live",
    ]);
  });
});

(has("jq") ? describe : describe.skip)("rows that are brought back (needs jq)", () => {
  const bringing = blockWith("bring_back() (");
  const put = `
extra() {
  case "$1 $2" in
    "dynamodb scan") echo "$ROWS"; [ -z "$SCAN_FAILS" ] || aws_error ExpiredTokenException ;;
    "dynamodb put-item")
      item=$(cat)
      case $item in
        *there*) aws_error ConditionalCheckFailedException ;;
        *slow*) aws_error ProvisionedThroughputExceededException ;;
        *denied*) aws_error AccessDeniedException ;;
        *) echo "$item" >> "$DIR/deleted" ;;
      esac ;;
  esac
}`;
  const bring = (ids: string[], more = "") => {
    const rows = JSON.stringify({ Items: ids.map((id) => ({ project_id: { S: id }, text: { S: "a\\nb 'c'" } })) });
    return run(bringing, { before: `${restore}\n${put}\nROWS=${quoted(rows)}\n${more}` });
  };
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

  test("are put as they were, those that are there left", () => {
    const { code, stdout, deleted: written } = bring(["new-1", "there", "new-2"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "put back 2, were there 1, failed 0\n" });
    expect(written.map((line) => JSON.parse(line))).toEqual(
      ["new-1", "new-2"].map((id) => ({ project_id: { S: id }, text: { S: "a\\nb 'c'" } })),
    );
  });

  test("are counted when they could not be put, with the reason, and the others go on", () => {
    const { code, stdout, stderr } = bring(["new", "slow", "denied", "there", "new"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "put back 2, were there 1, failed 2\n" });
    expect(stderr).toContain("ProvisionedThroughputExceededException");
    expect(stderr).toContain("AccessDeniedException");
    expect(stderr).not.toContain("ConditionalCheckFailed");
    expect(stderr).toContain("Not all of prod-webhooks-restored is back");
  });

  test("are not all there when reading them broke off", () => {
    const { code, stderr } = bring(["new"], "SCAN_FAILS=1");
    expect(code).toBe(1);
    expect(stderr).toContain("Not all of prod-webhooks-restored is back");
  });
});

describe("what a first deployment that failed has left", () => {
  const clearing = blockWith("clear_away() (");
  const left = [
    "AWS::DynamoDB::Table prod-webhooks",
    "AWS::SQS::Queue https://sqs.test/1/prod-deliveries",
    "AWS::Logs::LogGroup deployment-webhooks-prod-Logs1",
    "AWS::SecretsManager::Secret arn:secret",
    "AWS::Lambda::Version arn:function:1",
    "AWS::KMS::Key 1234",
  ];
  const stack = String.raw`
STATE=ROLLBACK_COMPLETE ITEMS=0 MESSAGES=0
extra() {
  case "$1 $2" in
    "cloudformation describe-stacks") echo "$STATE" ;;
    "cloudformation list-stack-resources") printf '%s\n' ${left.map((line) => `"${line.replace(" ", "\t")}"`).join(" ")} ;;
    "dynamodb scan") [ "$ITEMS" = gone ] && aws_error ResourceNotFoundException || echo "$ITEMS" ;;
    "sqs get-queue-attributes") [ "$MESSAGES" = gone ] && aws_error AWS.SimpleQueueService.NonExistentQueue || echo "$MESSAGES" ;;
    "sqs delete-queue") [ "$MESSAGES" != gone ] || aws_error AWS.SimpleQueueService.NonExistentQueue ;;
  esac
}
will_be table-prod-webhooks ACTIVE`;
  const before = `${restore}\n${stack}`;
  const destroys = /^(delete|update)/;

  test("is removed when it is empty, protection first, the stack last", () => {
    const { code, done, stdout, calls } = run(clearing, { before });
    expect(code).toBe(0);
    expect(done).toEqual([
      "update-table",
      "delete-table",
      "delete-queue",
      "delete-log-group",
      "delete-secret",
      "update-termination-protection",
      "delete-stack",
      "wait",
    ]);
    expect(calls).toContain("dynamodb update-table --table-name prod-webhooks --no-deletion-protection-enabled");
    expect(stdout).toContain("Left as it is: AWS::KMS::Key 1234\n");
    expect(stdout).not.toContain("Left as it is: AWS::Lambda::Version");
  });

  test.each([
    ["a table with an item", "ITEMS=1", "prod-webhooks is not empty: nothing is deleted."],
    ["a queue with messages", "MESSAGES=12", "https://sqs.test/1/prod-deliveries is not empty: nothing is deleted."],
    ["a queue that says nothing", "MESSAGES=None", "None"],
    ["a stack that is live", "STATE=UPDATE_COMPLETE", "deployment-webhooks-prod is UPDATE_COMPLETE"],
    ["a stack that was rolled back to what it was", "STATE=UPDATE_ROLLBACK_COMPLETE", "is UPDATE_ROLLBACK_COMPLETE"],
    ["a stack whose deployment goes on", "STATE=CREATE_FAILED", "is CREATE_FAILED"],
  ])("is left alone: %s", (_, change, told) => {
    const { code, done, stderr } = run(clearing, { before: `${before}\n${change}` });
    expect({ code, destroyed: done.filter((verb) => destroys.test(verb)) }).toEqual({ code: 1, destroyed: [] });
    expect(stderr).toContain(told);
    // By itself it looks too.
    const alone = run(`${clearing.replace(/^left_overs && .*$/m, "")}\nclear_away`, { before: `${before}\n${change}` });
    expect(alone.done.filter((verb) => destroys.test(verb))).toEqual([]);
  });

  test("is removed at the second try too, when some of it is gone", () => {
    const gone = "ITEMS=gone MESSAGES=gone; will_be table-prod-webhooks GONE";
    const { code, done } = run(clearing, { before: `${before}\n${gone}` });
    expect(code).toBe(0);
    expect(done).not.toContain("delete-table");
    expect(done.at(-2)).toBe("delete-stack");
  });

  test("stays from where something fails", () => {
    // The first call only shows why it failed.
    expectToStopAtEachFailure(clearing, before, () => {}, 2);
  });
});

describe("a query of the logs", () => {
  const tools = blockWith("\nask() {");
  const logs = String.raw`
extra() {
  case "$1 $2" in
    "cloudformation list-stack-resources") printf '%s\n' "$GROUPS_THERE" ;;
    "logs start-query") echo query-1 ;;
    "logs get-query-results")
      case "$*" in *"--query status"*) next status ;; *) echo "a row" ;; esac ;;
  esac
}
GROUPS_THERE=deployment-webhooks-prod-AccessLog1
will_be status Scheduled Running Running Complete`;
  const before = `${tools}\n${logs}`;
  const asking = `ask AccessLog 30 'limit 5'`;

  test("is waited for, and its rows are printed", () => {
    const { code, stdout, stderr, calls } = run(asking, { before });
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "a row\n", stderr: "" });
    expect(calls[1]).toContain("--log-group-name deployment-webhooks-prod-AccessLog1");
  });

  test("ends with a message when the CLI fails, at whatever it fails", () => {
    expectToStopAtEachFailure(asking, before, ({ stdout }) => expect(stdout).toBe(""));
  });

  test.each([
    [
      "there are no such logs",
      "GROUPS_THERE=None",
      "ask: deployment-webhooks-prod has no logs AccessLog here. Region?",
    ],
    ["it failed", "will_be status Running Failed", "ask: the query came to no end: Failed"],
    ["it took too long", "will_be status Running Timeout", "ask: the query came to no end: Timeout"],
  ])("ends with a message when %s", (_, change, told) => {
    const { code, stdout, stderr } = run(asking, { before: `${before}\n${change}` });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(told);
  });
});

test("a credential goes to curl by its input, where no process list shows it", () => {
  const curl = `curl() { echo "$*"; cat; }`;
  const { stdout } = run(`KEY=svc_secret\ncall --include https://api.example.com/v1/projects`, {
    before: `${blockWith("\nask() {")}\n${curl}`,
  });
  const [args, config] = stdout.split("\n");
  expect(args).toBe("--config - --silent --show-error --include https://api.example.com/v1/projects");
  expect(config).toBe('header = "Authorization: Bearer svc_secret"');
  for (const block of blocks) expect(block).not.toMatch(/Bearer \$\{?(KEY|TOKEN)/);
});
