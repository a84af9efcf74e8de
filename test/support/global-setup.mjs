import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDynamo, startSqs } from "../../bin/emulator/engines.ts";
import { createRunFolder } from "./run-folder.mjs";

/** `TEST_ENGINES`: URL of another engine for all of AWS, such as moto. `npm run engines` sets it. */
const given = process.env.TEST_ENGINES && { endpoint: process.env.TEST_ENGINES, stop: async () => {} };

/**
 * Starts the embedded engines once for all test files, in memory. Each file creates its own tables and queues in them.
 */
export default async function globalSetup() {
  createRunFolder();
  const dynamo = given || (await startDynamo(undefined, () => console.error("The DynamoDB engine has exited.")));
  const sqs = given || (await startSqs(0, undefined, () => console.error("The SQS engine has exited.")));
  process.env.AWS_ENDPOINT_URL_DYNAMODB = dynamo.endpoint;
  process.env.AWS_ENDPOINT_URL_SQS = sqs.endpoint;
  process.env.AWS_ENDPOINT_URL_SNS = sqs.endpoint;
  process.env.AWS_REGION = "us-east-1";
  process.env.AWS_ACCESS_KEY_ID = "test";
  process.env.AWS_SECRET_ACCESS_KEY = "test";
  // Written by optional-program.ts, printed by global-teardown.mjs.
  process.env.MISSING_PROGRAMS_FILE = join(tmpdir(), `missing-programs-${randomUUID()}`);
  // Programs that tests start reuse their compiled code: a quarter less CPU per start.
  // https://nodejs.org/api/module.html#module-compile-cache
  process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "../../node_modules/.cache/node");
  Object.assign(globalThis, { stopEngines: () => Promise.all([dynamo.stop(), sqs.stop()]) });
}
