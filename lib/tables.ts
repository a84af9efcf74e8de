import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import { Key } from "aws-cdk-lib/aws-kms";
import { Construct } from "constructs";
import { type TableKey, type TableRow, tables } from "../functions/foundation/manifest/tables.ts";
import type { KmsKey } from "./kms-key.ts";
import { constructId, deployedName } from "./names.ts";
import { neverDeleted } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";

export type Tables = Record<TableKey, dynamodb.ITable>;

/** Creates one table per row of functions/foundation/manifest/tables.ts, except a projects table that exists already. */
export function createTables(scope: Construct, stage: Stage, key?: KmsKey): Tables {
  const folder = new Construct(scope, "Tables");
  const created = Object.entries<TableRow>(tables).map(([name, row]) => [
    name,
    name === "projects" && stage.projectsTable
      ? existingTable(folder, name, stage.projectsTable)
      : createTable(folder, name, row, stage, key),
  ]);
  return Object.fromEntries(created) as Tables;
}

function existingTable(
  scope: Construct,
  name: string,
  { name: tableName, kmsKeyArn }: NonNullable<Stage["projectsTable"]>,
): dynamodb.ITable {
  const encryptionKey = kmsKeyArn === undefined ? undefined : Key.fromKeyArn(scope, "ProjectsKey", kmsKeyArn);
  const attributes = { tableName, ...(encryptionKey && { encryptionKey }) };
  return dynamodb.Table.fromTableAttributes(scope, constructId(name), attributes);
}

/** Creates a `Table` and no `TableV2`, which accepts no customer key in a stack without a fixed region. */
function createTable(scope: Construct, name: string, row: TableRow, stage: Stage, key?: KmsKey): dynamodb.Table {
  const table = new dynamodb.Table(scope, constructId(name), {
    tableName: deployedName(stage, row.name),
    partitionKey: text(row.partitionKey),
    ...(row.sortKey && { sortKey: text(row.sortKey) }),
    ...(row.ttl && { timeToLiveAttribute: row.ttl }),
    billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
    // The AWS managed key is the default: its use is logged in CloudTrail, and functions need no permission on it.
    ...(key
      ? { encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED, encryptionKey: key }
      : { encryption: dynamodb.TableEncryption.AWS_MANAGED }),
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: stage.keepsData },
    deletionProtection: stage.keepsData,
    removalPolicy: neverDeleted(stage),
  });
  for (const index of row.indexes ?? []) {
    table.addGlobalSecondaryIndex({
      indexName: index.name,
      partitionKey: { name: index.partitionKey.name, type: attributeTypes[index.partitionKey.type] },
      sortKey: text(index.sortKey),
      // The index only finds rows. Projecting more attributes would double the price of every write.
      projectionType: dynamodb.ProjectionType.KEYS_ONLY,
    });
  }
  return table;
}

const attributeTypes = { S: dynamodb.AttributeType.STRING, N: dynamodb.AttributeType.NUMBER };

function text(name: string): dynamodb.Attribute {
  return { name, type: dynamodb.AttributeType.STRING };
}
