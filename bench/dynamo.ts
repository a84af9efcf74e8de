import { startDynamo } from "../bin/local/engines.ts";
import { createTables } from "../bin/local/resources.ts";
import { dynamo } from "../functions/platform/aws.ts";

/** Runs something over the embedded DynamoDB engine with empty tables, to which the environment leads. */
export async function withDynamo<Value>(run: () => Promise<Value>): Promise<Value> {
  let isOver = false;
  const engine = await startDynamo(undefined, () => {
    if (!isOver) throw new Error("The DynamoDB engine has ended");
  });
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  });
  Object.assign(process.env, await createTables(dynamo()));
  try {
    return await run();
  } finally {
    isOver = true;
    dynamo().destroy();
    await engine.stop();
  }
}
