import { randomUUID } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";
import { newSignIn, userCodeKey } from "../../functions/identity/sign-ins/sign-in.ts";
import { givenUsedBudget } from "./request-budget.ts";

/** The code in the examples of the API. */
export const EXAMPLE_CODE = "BCDF-GHJK";

/** Lets a machine wait with this code, and the people who decide find their budgets unused. */
export async function givenSignIn(userCode: string, ...userIds: string[]): Promise<void> {
  const signIn = newSignIn(randomUUID(), "svc", undefined, new Date());
  const code = { key_hash: userCodeKey(userCode), device: signIn.key_hash, delete_after: signIn.delete_after };
  for (const Item of [signIn, code]) await dynamo().send(new PutCommand({ TableName: tableName("apiKeys"), Item }));
  for (const id of ["address:127.0.0.1", ...userIds.map((user) => `user:${user}`)]) {
    await givenUsedBudget(`sign-in:${id}`, 0);
  }
}
