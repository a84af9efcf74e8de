import { type TableRow, tables } from "../../functions/manifest/tables.ts";
import { dev, type Json, type Resource, SynthesizedStack } from "./synthesized.ts";

/* The keys and indexes of each table are pinned in stateful.test.ts. */

const rows = Object.values<TableRow>(tables);
const prod = new SynthesizedStack("prod");
const every = new SynthesizedStack("everyOption");

test("there is one table per row, with the stage in its name", () => {
  const names = prod.all("AWS::DynamoDB::Table").map(({ Properties }) => Properties.TableName);
  expect(names.sort()).toEqual(rows.map((row) => `deployment-webhooks-prod-${row.name}`).sort());
});

test("only events, deliveries and budgets expire", () => {
  const expiring = dev.all("AWS::DynamoDB::Table").flatMap(({ Properties }) => {
    const { TableName, TimeToLiveSpecification } = Properties;
    return TimeToLiveSpecification ? [[TableName, TimeToLiveSpecification]] : [];
  });
  const ttl = { AttributeName: "expires_at", Enabled: true };
  expect(Object.fromEntries(expiring)).toEqual({
    "deployment-webhooks-dev-api-keys": { ...ttl, AttributeName: "delete_after" },
    "deployment-webhooks-dev-events": ttl,
    "deployment-webhooks-dev-deliveries": ttl,
    "deployment-webhooks-dev-request-budgets": ttl,
  });
});

test("an index contains only keys", () => {
  const indexes = dev.all("AWS::DynamoDB::Table").flatMap(({ Properties }) => Properties.GlobalSecondaryIndexes ?? []);
  expect(indexes.map(({ IndexName, Projection }: Json) => [IndexName, Projection])).toEqual([
    ["due", { ProjectionType: "KEYS_ONLY" }],
  ]);
});

describe.each(rows)("$name", (row) => {
  test("is encrypted, and billed per request, in every stage", () => {
    for (const { Properties } of [
      dev.table(`deployment-webhooks-dev-${row.name}`),
      prod.table(`deployment-webhooks-prod-${row.name}`),
    ]) {
      expect(Properties.BillingMode).toBe("PAY_PER_REQUEST");
      expect(Properties.SSESpecification.SSEEnabled).toBe(true);
    }
  });

  test("is retained, protected and restorable in prod, and deleted with the stack in dev", () => {
    expect(protectionOf(prod.table(`deployment-webhooks-prod-${row.name}`))).toEqual({
      deletion: "Retain",
      isProtected: true,
      pitr: true,
    });
    expect(protectionOf(dev.table(`deployment-webhooks-dev-${row.name}`))).toEqual({
      deletion: "Delete",
      isProtected: false,
      pitr: false,
    });
  });
});

describe("an existing projects table", () => {
  test("replaces the stack's own", () => {
    const names = every.all("AWS::DynamoDB::Table").map(({ Properties }) => Properties.TableName);
    expect(names).not.toContain("deployment-webhooks-every-projects");
    expect(names).toHaveLength(rows.length - 1);
    expect(every.outputs.ProjectsTableName.Value).toBe("platform-projects");
    const { Variables } = every.functionFor("projects/list").Properties.Environment;
    expect(Variables.PROJECTS_TABLE).toBe("platform-projects");
  });

  test("can be used by the functions like the stack's own", () => {
    const actions = every
      .all("AWS::IAM::Policy")
      .flatMap(({ Properties }) => Properties.PolicyDocument.Statement)
      .filter((statement: Json) => JSON.stringify(statement.Resource).includes("table/platform-projects"))
      .flatMap(({ Action }: Json) => Action);
    expect([...new Set(actions)].sort()).toEqual(["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"]);
  });
});

function protectionOf({ DeletionPolicy, Properties }: Resource) {
  return {
    deletion: DeletionPolicy,
    isProtected: Properties.DeletionProtectionEnabled,
    pitr: Properties.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled,
  };
}
