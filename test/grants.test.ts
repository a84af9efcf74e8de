import { allowedCallsOf, type Right, trail } from "../bin/local/permissions.ts";
import { endpoints } from "../functions/manifest/endpoints.ts";
import type { Grants } from "../functions/manifest/grants-schema.ts";
import { type Trigger, workers } from "../functions/manifest/workers.ts";
import { logSink } from "../functions/platform/log.ts";
import { dev } from "./lib/synthesised.ts";
import { useEveryFunction } from "./support/every-function.ts";
import { startSecretsManager } from "./support/secrets-manager.ts";
import { jwtSecret, startTestService } from "./support/service.ts";

/* Rows, stack and reality agree: each function is granted what it calls, and nothing more. */

const rows: { file: string; uses: Grants; trigger?: Trigger }[] = [...endpoints, ...workers];
const called = new Map<string, Set<Right>>(rows.map(({ file }) => [file, new Set()]));
const refusals = new Set<string>();
let failure: Error | undefined;

beforeAll(async () => {
  process.env.RETRY_SCHEDULE = "0,0";
  process.env.DELIVERY_GRACE_SECONDS = "1";
  process.env.LAST_USED_RESOLUTION_SECONDS = "0";
  process.env.JWT_SECRET_ARN = "arn:aws:secretsmanager:us-east-1:000000000000:secret:jwt-AbCdEf";
  trail.note = (file, right) => called.get(file)?.add(right);
  const secrets = await startSecretsManager(process.env.JWT_SECRET_ARN, jwtSecret);
  const service = await startTestService({ deliver: true });
  logSink.write = (_level, line) => {
    const text = JSON.stringify(line);
    if (/AccessDenied|NotTold/.test(text)) refusals.add(text);
  };
  // What comes of a right that is missing says less than the refusal.
  failure = await useEveryFunction(service).then(
    () => undefined,
    (error: Error) => error,
  );
  await service.stop();
  await secrets.stop();
});

test("no function is refused anything", () => {
  expect([...refusals]).toEqual([]);
});

test("every function does all it has to", () => {
  if (failure) throw failure;
});

const callsOf = (file: string): string[] => [...(called.get(file) ?? [])].sort();

test.each(rows)("$file calls all that its row uses, and nothing else", ({ file, uses }) => {
  expect(callsOf(file)).toEqual([...allowedCallsOf(uses)].sort());
});

test.each(rows)("$file is granted what it calls, and nothing else", ({ file, trigger }) => {
  const granted = dev.grants(file).filter((grant) => !isLambdasOwn(grant, trigger));
  expect(granted.map((grant) => grant.replace(/ dev-/, " "))).toEqual(callsOf(file));
});

/** Lambda writes the log and reads the queue by itself, with the function's rights. */
const isLambdasOwn = (grant: string, trigger: Trigger | undefined): boolean =>
  grant.endsWith(" on its log group") ||
  (trigger?.kind === "queue" && /^sqs:(ReceiveMessage|DeleteMessage|GetQueueAttributes) on/.test(grant));
