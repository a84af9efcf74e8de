import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import {
  AccessDenied,
  allowedCallsOf,
  EnvNotGranted,
  type Right,
  trail,
  withGrantsOf,
} from "../bin/emulator/permissions.ts";
import { functionRows } from "../functions/foundation/manifest/function-rows.ts";
import type { Grants } from "../functions/foundation/manifest/grants-schema.ts";
import type { Trigger } from "../functions/foundation/manifest/workers.ts";
import { dynamo } from "../functions/foundation/platform/aws.ts";
import { tableName } from "../functions/foundation/platform/env.ts";
import { log, logSink } from "../functions/foundation/platform/log.ts";
import { dev } from "./lib/synthesized.ts";
import { interceptDynamo, isCall, restoreAws } from "./support/aws-calls.ts";
import { call } from "./support/call.ts";
import { useEveryFunction, usePublicKeys } from "./support/every-function.ts";
import { fakeDate } from "./support/fake-date.ts";
import { startSecretsManager } from "./support/secrets-manager.ts";
import { jwtSecret, startTestService } from "./support/service.ts";

/* The rows, the grants of the stack and the actual calls are the same for each function. */

const rows: readonly { id: string; uses: Grants; trigger?: Trigger }[] = functionRows;
const called = new Map<string, Set<Right>>(rows.map(({ id }) => [id, new Set()]));
const deniedCalls = new Set<string>();
/** The reads of tables that were not strongly consistent. */
const staleReads = new Set<string>();
let failure: Error | undefined;
let apiKeysTable: string;

beforeAll(async () => {
  process.env.RETRY_SCHEDULE = "0,0";
  process.env.LAST_USED_RESOLUTION_SECONDS = "0";
  process.env.JWT_SECRET_ARN = "arn:aws:secretsmanager:us-east-1:000000000000:secret:jwt-AbCdEf";
  trail.note = (id, right) => called.get(id)?.add(right);
  process.env.SIGNATURE_SECRET_ARN = "arn:aws:secretsmanager:us-east-1:000000000000:secret:signature-AbCdEf";
  const others = { [process.env.SIGNATURE_SECRET_ARN]: "f".repeat(64) };
  const secrets = await startSecretsManager(process.env.JWT_SECRET_ARN, jwtSecret, others);
  const service = await startTestService({ deliver: true });
  apiKeysTable = tableName("apiKeys");
  interceptDynamo(async ({ command, input }, send) => {
    if (isStaleRead(command, input)) staleReads.add(`${command} ${JSON.stringify(input)}`);
    return send();
  });
  logSink.write = (_level, line) => {
    const text = JSON.stringify(line);
    if (isDenial(text)) deniedCalls.add(text);
  };
  // A missing grant makes some later step fail. The denied calls explain the cause better, so they are checked first.
  failure = await useEveryFunction(service).then(
    () => undefined,
    (error: Error) => error,
  );
  // The functions of this process share the secret that the authorizer has read, for five minutes.
  const date = fakeDate();
  await usePublicKeys(service, () => date.advance(301)).catch((error: Error) => {
    failure ??= error;
  });
  date.advance(301);
  await call("credentials-verify", { credentials: [{ token: service.user().token }] });
  jest.useRealTimers();
  restoreAws();
  trail.note = () => {};
  await service.stop();
  await secrets.stop();
});

const isDenial = (logLine: string): boolean => /AccessDeniedException|EnvNotGranted/.test(logLine);

/** Reads of an index cannot be consistent. A batch is consistent per table. */
function isStaleRead(command: string, input: Record<string, unknown>): boolean {
  const { ConsistentRead, IndexName, RequestItems } = input;
  if (!/^(GetItem|Query|Scan|BatchGetItem)Command$/.test(command) || IndexName !== undefined) return false;
  // Lists, statistics and health show deliveries; only a recovery changes those that it reads.
  // It reads whole rows.
  const isRecovery = input.ProjectionExpression === undefined;
  if (isCall({ command, input }, "Query", "deliveries") && !isRecovery) return false;
  // The health of a webhook, too.
  if (isCall({ command, input }, "Query", "backlog") && input.ProjectionExpression === "#due") return false;
  // The write that charges a budget decides.
  if (isCall({ command, input }, "GetItem", "request-budgets")) return false;
  const reads = Object.values((RequestItems ?? [{ ConsistentRead }]) as Record<string, { ConsistentRead?: boolean }>);
  return reads.some((read) => read.ConsistentRead !== true);
}

test("every read of a table but those that show deliveries is strongly consistent: a change applies from the next request on", () => {
  expect([...staleReads]).toEqual([]);
});

test.each<[string, () => Promise<unknown>, new (...args: never[]) => Error]>([
  ["call", () => dynamo().send(new GetCommand({ TableName: apiKeysTable, Key: { key_hash: "h" } })), AccessDenied],
  ["environment variable", async () => process.env.API_KEYS_TABLE, EnvNotGranted],
])("a denied %s is recognized in the log", async (_, use, expected) => {
  const error = await withGrantsOf("deliveries-sweep", use).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(expected);
  const lines: string[] = [];
  logSink.write = (_level, line) => void lines.push(JSON.stringify(line));
  log.error("batch failed", error);
  logSink.write("error", { message: `deliveries-sweep failed: ${String(error)}` });
  expect(lines.map(isDenial)).toEqual([true, true]);
});

test("another failure is not recognized as a denial", () => {
  expect(isDenial(JSON.stringify({ message: "batch failed", error: { name: "TimeoutError" } }))).toBe(false);
});

test("no call of a function is denied", () => {
  expect([...deniedCalls]).toEqual([]);
});

test("the scenario that uses every function succeeds", () => {
  if (failure) throw failure;
});

const callsOf = (id: string): string[] => [...(called.get(id) ?? [])].sort();

test.each(rows)("$id makes exactly the calls that its row lists", ({ id, uses }) => {
  expect(callsOf(id)).toEqual([...allowedCallsOf(uses)].sort());
});

test.each(rows)("$id has exactly the grants for its calls", ({ id, trigger }) => {
  const granted = dev.grants(id).filter((grant) => !isLambdasOwn(grant, trigger));
  expect(granted.map((grant) => grant.replace(/ deployment-webhooks-dev-/, " "))).toEqual(callsOf(id));
});

/** Returns whether Lambda itself needs the grant, to write the log or to read the queue. */
const isLambdasOwn = (grant: string, trigger: Trigger | undefined): boolean =>
  grant.endsWith(" on its log group") ||
  (trigger?.kind === "queue" && /^sqs:(ReceiveMessage|DeleteMessage|GetQueueAttributes) on/.test(grant));
