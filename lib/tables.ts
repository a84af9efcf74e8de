import { RemovalPolicy } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import { Construct } from "constructs";
import { type TableKey, type TableRow, tables } from "../functions/tables.ts";
import { constructId, deployedName } from "./names.ts";
import type { Stage } from "./stages.ts";

export type Tables = Record<TableKey, dynamodb.TableV2>;

/** One table per row of functions/tables.ts. */
export function createTables(scope: Construct, stage: Stage): Tables {
  const folder = new Construct(scope, "Tables");
  const created = Object.entries<TableRow>(tables).map(([key, row]) => [key, createTable(folder, key, row, stage)]);
  return Object.fromEntries(created) as Tables;
}

function createTable(scope: Construct, key: string, row: TableRow, stage: Stage): dynamodb.TableV2 {
  return new dynamodb.TableV2(scope, constructId(key), {
    tableName: deployedName(stage, row.name),
    partitionKey: text(row.partitionKey),
    ...(row.sortKey && { sortKey: text(row.sortKey) }),
    globalSecondaryIndexes: row.indexes?.map((index) => ({
      indexName: index.name,
      partitionKey: { name: index.partitionKey.name, type: attributeTypes[index.partitionKey.type] },
      sortKey: text(index.sortKey),
      // An index only tells which rows to look at: copies of their contents would double the price of every write.
      projectionType: dynamodb.ProjectionType.KEYS_ONLY,
    })),
    ...(row.ttl && { timeToLiveAttribute: row.ttl }),
    billing: dynamodb.Billing.onDemand(),
    // The account's own key, not one that AWS keeps to itself: its use shows in CloudTrail. No function needs a grant on it.
    encryption: dynamodb.TableEncryptionV2.awsManagedKey(),
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: stage.keepsData },
    deletionProtection: stage.keepsData,
    removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
  });
}

const attributeTypes = { S: dynamodb.AttributeType.STRING, N: dynamodb.AttributeType.NUMBER };

function text(name: string): dynamodb.Attribute {
  return { name, type: dynamodb.AttributeType.STRING };
}
