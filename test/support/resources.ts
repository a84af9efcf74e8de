import { randomUUID } from "node:crypto";
import { createQueues, createTables, createTopics } from "../../bin/emulator/resources.ts";
import { dynamo, sns, sqs } from "../../functions/foundation/platform/aws.ts";

/** Creates tables, queues and topics for this test file only and points the functions at them. For `beforeAll`. */
export async function freshResources(): Promise<void> {
  const prefix = `${randomUUID().slice(0, 8)}-`;
  const urlOf = (name: string) => `${process.env.AWS_ENDPOINT_URL_SQS}/000000000000/${name}`;
  const [tableEnv, queueEnv, topicEnv] = await Promise.all([
    createTables(dynamo(), prefix),
    createQueues(sqs(), { prefix, urlOf }),
    createTopics(sns(), prefix),
  ]);
  Object.assign(process.env, tableEnv, queueEnv, topicEnv);
}
