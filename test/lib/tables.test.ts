import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import { type TableRow, tables } from "../../functions/foundation/manifest/tables.ts";
import { dev, type Json, SynthesizedStack } from "./synthesized.ts";

/* The keys and indexes of each table are pinned in stateful.test.ts. */

const rows = Object.values<TableRow>(tables);
const prod = new SynthesizedStack("prod");
const every = new SynthesizedStack("everyOption");

test("there is one table per row, with the stage in its name", () => {
  const names = prod.all("AWS::DynamoDB::Table").map(({ Properties }) => Properties.TableName);
  expect(names.sort()).toEqual(rows.map((row) => `deployment-webhooks-prod-${row.name}`).sort());
});

test("only removed members, events, deliveries, budgets, audit events, revocations and outcomes of requests expire", () => {
  const expiring = dev.all("AWS::DynamoDB::Table").flatMap(({ Properties }) => {
    const { TableName, TimeToLiveSpecification } = Properties;
    return TimeToLiveSpecification ? [[TableName, TimeToLiveSpecification]] : [];
  });
  const ttl = { AttributeName: "expires_at", Enabled: true };
  expect(Object.fromEntries(expiring)).toEqual({
    "deployment-webhooks-dev-api-keys": { ...ttl, AttributeName: "delete_after" },
    "deployment-webhooks-dev-member-versions": { ...ttl, AttributeName: "delete_after" },
    "deployment-webhooks-dev-events": ttl,
    "deployment-webhooks-dev-deliveries": ttl,
    "deployment-webhooks-dev-request-budgets": ttl,
    "deployment-webhooks-dev-audit-events": ttl,
    "deployment-webhooks-dev-revocations": ttl,
    "deployment-webhooks-dev-idempotency-keys": ttl,
  });
});

test("an index contains only keys", () => {
  const indexes = dev.all("AWS::DynamoDB::Table").flatMap(({ Properties }) => Properties.GlobalSecondaryIndexes ?? []);
  expect(indexes.map(({ IndexName, Projection }: Json) => [IndexName, Projection])).toEqual([
    ["due", { ProjectionType: "KEYS_ONLY" }],
    ["due", { ProjectionType: "KEYS_ONLY" }],
  ]);
});

// service-stack.test.ts tests that tables are retained in prod only.
test.each(rows)("$name is encrypted and billed per request, and protected and restorable in prod", ({ name }) => {
  for (const [stack, stage] of [
    [dev, "dev"],
    [prod, "prod"],
  ] as const) {
    const isProd = stack === prod;
    expect(stack.table(`deployment-webhooks-${stage}-${name}`).Properties).toMatchObject({
      BillingMode: "PAY_PER_REQUEST",
      SSESpecification: { SSEEnabled: true },
      DeletionProtectionEnabled: isProd,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: isProd },
    });
  }
});

describe("an existing projects table", () => {
  test("replaces the stack's own", () => {
    const names = every.all("AWS::DynamoDB::Table").map(({ Properties }) => Properties.TableName);
    expect(names).not.toContain("deployment-webhooks-every-projects");
    expect(names).toHaveLength(rows.length - 1);
    expect(every.outputs.ProjectsTableName.Value).toBe("platform-projects");
    const { Variables } = every.functionFor("listProjects").Properties.Environment;
    expect(Variables.PROJECTS_TABLE).toBe("platform-projects");
  });

  test("can be used by the functions like the stack's own", () => {
    const actions = every
      .allStatements()
      .filter((statement: Json) => JSON.stringify(statement.Resource).includes("table/platform-projects"))
      .flatMap(({ Action }: Json) => Action);
    expect([...new Set(actions)].sort()).toEqual([
      "dynamodb:BatchGetItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]);
  });
});

describe("the policy of the table of signing secrets", () => {
  const table = prod.table("deployment-webhooks-prod-webhook-secrets");
  const statements: Json[] = table.Properties.ResourcePolicy?.PolicyDocument.Statement ?? [];
  const breakGlass = arnOf("iam", "", "role/deployment-webhooks-prod-break-glass");
  const secretsArn = arnOf("dynamodb", { Ref: "AWS::Region" }, "table/deployment-webhooks-prod-webhook-secrets");

  const roleOf = (id: string) => prod.target(prod.functionFor(id).Properties.Role);
  const exceptions = ({ Condition }: Json): string[] =>
    Condition.ArnNotEquals["aws:PrincipalArn"].map((arn: Json) =>
      arn["Fn::GetAtt"] ? prod.target(arn).id : textOf(arn),
    );

  /** Returns whether the policy denies a call, as IAM evaluates it. */
  function denies(principal: string, action: string, returnValues?: string): boolean {
    return statements.some((statement) => {
      const { StringNotEquals: unlike, Null: isAbsent } = statement.Condition;
      const asksForItem = returnValues !== undefined && returnValues !== unlike?.["dynamodb:ReturnValues"];
      const matches = unlike === undefined || (isAbsent["dynamodb:ReturnValues"] === "false" && asksForItem);
      return matches && statement.Action.includes(`dynamodb:${action}`) && !exceptions(statement).includes(principal);
    });
  }

  const writes = ["PutItem", "UpdateItem", "DeleteItem"];
  const itemActions = [
    ...["GetItem", "BatchGetItem", "Query", "Scan", "ConditionCheckItem", ...writes, "BatchWriteItem"],
    ...["PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"],
  ];
  const copies = [
    ...["ExportTableToPointInTime", "RestoreTableToPointInTime"],
    ...["EnableKinesisStreamingDestination", "UpdateKinesisStreamingDestination"],
  ];

  test("exists in stages that keep data, on no other table", () => {
    const withPolicy = (stack: SynthesizedStack) =>
      stack
        .all("AWS::DynamoDB::Table")
        .flatMap(({ Properties }) => (Properties.ResourcePolicy ? [Properties.TableName] : []));
    expect(withPolicy(prod)).toEqual(["deployment-webhooks-prod-webhook-secrets"]);
    expect(withPolicy(every)).toEqual(["deployment-webhooks-every-webhook-secrets"]);
    expect(withPolicy(dev)).toEqual([]);
  });

  test("denies, to any principal, on this table and its indexes", () => {
    for (const { Effect, Principal, Resource } of statements) {
      expect([Effect, Principal]).toEqual(["Deny", { AWS: "*" }]);
      expect(Resource.map(textOf)).toEqual([secretsArn, `${secretsArn}/index/*`]);
    }
  });

  test.each([
    ["the account's root user", arnOf("iam", "", "root")],
    ["another role", arnOf("iam", "", "role/admin")],
    ["a role whose name begins like that of the break-glass role", `${breakGlass}-2`],
    ["an AWS service, which has no ARN", ""],
  ])("denies %s to read, write or copy items", (_, principal) => {
    const permitted = [...itemActions, ...copies].filter((action) => !denies(principal, action));
    expect(permitted).toEqual([]);
  });

  test("lets the senders read, one function each create, import, rotate, change headers and delete, one all of it for subscriptions, and nothing else", () => {
    const permitted = functionRows.flatMap(({ id }) =>
      [...itemActions, ...copies].flatMap((action) => (denies(roleOf(id).id, action) ? [] : [`${id}: ${action}`])),
    );
    expect(permitted.sort()).toEqual([
      "attempts-send-slow: BatchGetItem",
      "attempts-send: BatchGetItem",
      "createWebhook: PutItem",
      "deleteWebhook: DeleteItem",
      "rotateWebhookSecret: UpdateItem",
      "subscribe: DeleteItem",
      "subscribe: PutItem",
      "subscribe: UpdateItem",
      "updateWebhook: UpdateItem",
      "webhooks-import: ConditionCheckItem",
      "webhooks-import: PutItem",
    ]);
  });

  test("denies a function that only writes to receive the item, but not to write", () => {
    const id = roleOf("rotateWebhookSecret").id;
    const returning = ["ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"];
    expect(returning.filter((values) => !denies(id, "UpdateItem", values))).toEqual([]);
    expect([denies(id, "UpdateItem", "NONE"), denies(id, "UpdateItem")]).toEqual([false, false]);
  });

  test("denies the break-glass role nothing", () => {
    const denied = [...itemActions, ...copies].filter((action) => denies(breakGlass, action, "ALL_OLD"));
    expect(statements.length).toBeGreaterThan(0);
    expect(denied).toEqual([]);
  });

  test("names the break-glass role of the stage's option, with its path", () => {
    const { PolicyDocument } = every.table("deployment-webhooks-every-webhook-secrets").Properties.ResourcePolicy;
    for (const { Condition } of PolicyDocument.Statement) {
      const names = Condition.ArnNotEquals["aws:PrincipalArn"].filter((arn: Json) => !arn["Fn::GetAtt"]).map(textOf);
      expect(names).toEqual(["arn:aws:iam::111122223333:role/operations/read-secrets"]);
    }
  });

  test("denies nothing that a deployment, a backup or an alarm does", () => {
    const denied = statements.flatMap(({ Action }) => [Action].flat());
    expect(
      denied.filter((action) =>
        /\*|Table$|Policy|Describe|List|Tag|UpdateContinuousBackups|CreateBackup|TimeToLive/.test(action),
      ),
    ).toEqual([]);
  });

  test("covers all copies of the items: the table has no stream and no replica, which have policies of their own", () => {
    expect(table.Properties).not.toHaveProperty("StreamSpecification");
    expect(table.Properties).not.toHaveProperty("KinesisStreamSpecification");
    expect(prod.all("AWS::DynamoDB::GlobalTable")).toEqual([]);
  });
});

/** Returns an ARN in the stack's account, with references in angle brackets. */
function arnOf(service: string, region: Json, resource: string): string {
  return textOf({
    "Fn::Join": [
      "",
      ["arn:", { Ref: "AWS::Partition" }, `:${service}:`, region, ":", { Ref: "AWS::AccountId" }, `:${resource}`],
    ],
  });
}

function textOf(value: Json): string {
  if (typeof value === "string") return value;
  return value["Fn::Join"]?.[1].map(textOf).join("") ?? `<${value.Ref}>`;
}
