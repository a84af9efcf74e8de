import { startDynamo } from "../bin/local/engines.ts";
import { createTables } from "../bin/local/resources.ts";
import { dynamo } from "../functions/platform/aws.ts";

/** Starts the embedded DynamoDB engine with empty tables, points the environment at it, and runs a function. */
export async function withDynamo<Value>(run: () => Promise<Value>): Promise<Value> {
  let isStopping = false;
  const engine = await startDynamo(undefined, () => {
    if (!isStopping) throw new Error("The DynamoDB engine exited");
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
    isStopping = true;
    dynamo().destroy();
    await engine.stop();
  }
}
