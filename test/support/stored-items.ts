import { QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { TableKey } from "../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";

/** Reads all items with a partition key, such as `{ project_id }`. */
export async function itemsOf(table: TableKey, partition: Record<string, string>) {
  const [[name, value] = []] = Object.entries(partition);
  const { Items = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName(table),
      KeyConditionExpression: "#name = :value",
      ExpressionAttributeNames: { "#name": name ?? "" },
      ExpressionAttributeValues: { ":value": value },
      ConsistentRead: true,
    }),
  );
  return Items;
}

/** Writes attributes of an item directly, without conditions. @returns their previous values */
export async function changeItem(table: TableKey, Key: object, values: object): Promise<Record<string, unknown>> {
  const names = Object.keys(values);
  const { Attributes = {} } = await dynamo().send(
    new UpdateCommand({
      TableName: tableName(table),
      Key: { ...Key },
      UpdateExpression: `SET ${names.map((_, index) => `#n${index} = :v${index}`).join(", ")}`,
      ExpressionAttributeNames: Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
      ExpressionAttributeValues: Object.fromEntries(Object.values(values).map((value, index) => [`:v${index}`, value])),
      ReturnValues: "UPDATED_OLD",
    }),
  );
  return Attributes;
}
