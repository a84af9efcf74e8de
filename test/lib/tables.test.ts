import { type TableRow, tables } from "../../functions/manifest/tables.ts";
import { stageNamed } from "../../lib/stages.ts";
import { dev, Synthesised } from "./synthesised.ts";

const rows = Object.values<TableRow>(tables);
const prod = new Synthesised(stageNamed("prod"));

test("there is one table per row, named by its stage", () => {
  const names = prod.all("AWS::DynamoDB::Table").map(({ Properties }) => Properties.TableName);
  expect(names.sort()).toEqual(rows.map((row) => `prod-${row.name}`).sort());
});

describe.each(rows)("$name", (row) => {
  test("has the keys, indexes and expiry of its row", () => {
    const { Properties } = dev.table(`dev-${row.name}`);
    expect(keysOf(Properties.KeySchema)).toEqual([row.partitionKey, row.sortKey].filter(Boolean));
    const indexes = (Properties.GlobalSecondaryIndexes ?? []).map(
      ({ IndexName, KeySchema, Projection }: { IndexName: string; KeySchema: KeySchema; Projection: unknown }) => ({
        name: IndexName,
        keys: keysOf(KeySchema),
        Projection,
      }),
    );
    expect(indexes).toEqual(
      (row.indexes ?? []).map((index) => ({
        name: index.name,
        keys: [index.partitionKey.name, index.sortKey],
        Projection: { ProjectionType: "KEYS_ONLY" },
      })),
    );
    expect(Properties.TimeToLiveSpecification?.AttributeName).toBe(row.ttl);
  });

  test("is encrypted and paid by use in every stage", () => {
    for (const table of [dev.table(`dev-${row.name}`), prod.table(`prod-${row.name}`)]) {
      expect(table.Properties.BillingMode).toBe("PAY_PER_REQUEST");
      expect(table.Properties.SSESpecification.SSEEnabled).toBe(true);
    }
  });

  test("outlives the stack in prod and goes with it in dev", () => {
    expect(protectionOf(prod.table(`prod-${row.name}`))).toEqual({ deletion: "Retain", isProtected: true, pitr: true });
    expect(protectionOf(dev.table(`dev-${row.name}`))).toEqual({ deletion: "Delete", isProtected: false, pitr: false });
  });
});

test("the index of what is due sorts by time within numbered shards", () => {
  const { AttributeDefinitions } = dev.table("dev-deliveries").Properties;
  expect(AttributeDefinitions).toContainEqual({ AttributeName: "due_shard", AttributeType: "N" });
  expect(AttributeDefinitions).toContainEqual({ AttributeName: "due_at", AttributeType: "S" });
});

type KeySchema = { AttributeName: string; KeyType: string }[];

function keysOf(schema: KeySchema): string[] {
  expect(schema.map((key) => key.KeyType)).toEqual(["HASH", "RANGE"].slice(0, schema.length));
  return schema.map((key) => key.AttributeName);
}

function protectionOf({ DeletionPolicy, Properties }: ReturnType<Synthesised["table"]>) {
  return {
    deletion: DeletionPolicy,
    isProtected: Properties.DeletionProtectionEnabled,
    pitr: Properties.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled,
  };
}
