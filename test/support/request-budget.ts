import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";
import { itemsOf } from "./stored-items.ts";

const MINUTE_MS = 60_000;

/** Sets what a project has used of its budget in this minute and the next, in which a slow test may end. */
export async function givenUsedBudget(projectId: string, used: number): Promise<void> {
  const thisMinute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  for (const start of [thisMinute, thisMinute + MINUTE_MS]) {
    const Item = {
      project_id: projectId,
      window: new Date(start).toISOString(),
      used,
      expires_at: start / 1000 + 3660,
    };
    await dynamo().send(new PutCommand({ TableName: tableName("requestBudgets"), Item }));
  }
}

/** Returns what a project has used, by window, oldest first. */
export async function usedBudgets(projectId: string): Promise<number[]> {
  return (await itemsOf("requestBudgets", { project_id: projectId })).map(({ used }) => used);
}

/** Returns what a project has used in all windows. */
export const usedBudget = async (projectId: string): Promise<number> =>
  (await usedBudgets(projectId)).reduce((sum, used) => sum + used, 0);

const READ_WINDOW_MS = 30_000;

/** Sets what a project has used of its read budget in this window and the next, in which a slow test may end. */
export async function givenUsedReads(projectId: string, used: number): Promise<void> {
  const start = Math.floor(Date.now() / READ_WINDOW_MS) * READ_WINDOW_MS;
  for (const at of [start, start + READ_WINDOW_MS]) {
    const Key = { project_id: `reads:${projectId}`, window: new Date(at).toISOString() };
    const Item = { ...Key, used, expires_at: at / 1000 + 3660 };
    await dynamo().send(new PutCommand({ TableName: tableName("requestBudgets"), Item }));
  }
}

/** Returns the read units that a project was charged in all windows. */
export const usedReads = (projectId: string): Promise<number> => usedBudget(`reads:${projectId}`);
