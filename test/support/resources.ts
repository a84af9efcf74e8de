import { randomUUID } from "node:crypto";
import { createQueues, createTables } from "../../bin/local/resources.ts";
import { dynamo, sqs } from "../../functions/platform/aws.ts";

/** Creates tables and queues for this test file only and points the functions at them. For `beforeAll`. */
export async function freshResources(): Promise<void> {
  const prefix = `${randomUUID().slice(0, 8)}-`;
  const urlOf = (name: string) => `${process.env.AWS_ENDPOINT_URL_SQS}/000000000000/${name}`;
  const [tableEnv, queueEnv] = await Promise.all([
    createTables(dynamo(), prefix),
    createQueues(sqs(), { prefix, urlOf }),
  ]);
  Object.assign(process.env, tableEnv, queueEnv);
}
