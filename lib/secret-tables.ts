import { Stack } from "aws-cdk-lib";
import { Table } from "aws-cdk-lib/aws-dynamodb";
import { AnyPrincipal, Effect, PolicyStatement } from "aws-cdk-lib/aws-iam";
import { functionRows } from "../functions/foundation/manifest/function-rows.ts";
import { readActions } from "../functions/foundation/manifest/grants-schema.ts";
import { type TableKey, type TableRow, tables as tableRows } from "../functions/foundation/manifest/tables.ts";
import { type FunctionRow, idsGranted } from "./grants.ts";
import { constructId, deployedName, stackName } from "./names.ts";
import type { ServiceFunction, StageContext } from "./service-function.ts";
import type { Stage } from "./stage.ts";

/*
 * The resource policy of a table of secrets. The grants limit the functions of this service, but other principals of the
 * account often may read all of DynamoDB, for example with ReadOnlyAccess. The policy denies them the items, whatever
 * their own policies allow. It denies nothing that a deployment does.
 *
 * It does not stop a principal that may change or delete the policy, or restore a backup. These calls are management
 * events, which CloudTrail records by default.
 */

/**
 * The actions that read or write items or copy them elsewhere, of those that the policy of a table supports. A
 * transaction needs the actions of its items. Not denied: CreateBackup, because restoring the backup cannot be denied.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-iam-actions.html
 */
const dataActions = [
  ...["GetItem", "BatchGetItem", "Query", "Scan", "ConditionCheckItem"],
  ...["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"],
  ...["PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"],
  ...["ExportTableToPointInTime", "RestoreTableToPointInTime"],
  ...["EnableKinesisStreamingDestination", "UpdateKinesisStreamingDestination"],
];

/** Writes that return the old or new item if asked to (`ReturnValues`). */
const returningActions = ["PutItem", "UpdateItem", "DeleteItem"];

/** Actions on a table that are denied to all principals but the functions of these files and the break-glass role. */
export interface Denial {
  actions: string[];
  exceptIds: string[];
  /** Only denied if the call asks for the item (`ReturnValues`). */
  ofReturnValues?: true;
}

/**
 * Returns what the policy of a table denies: each action to all but the functions whose rows grant it, and return values
 * of writes to all but those that may read.
 */
export function denialsFor(key: TableKey, rows: readonly FunctionRow[] = functionRows): Denial[] {
  const byIds = Map.groupBy(dataActions, (action) => idsGranted(key, action, rows).join());
  const denials = [...byIds.values()].map((actions) => ({
    actions,
    exceptIds: idsGranted(key, actions[0] ?? "", rows),
  }));
  const readers = new Set(readActions.flatMap((action) => idsGranted(key, action, rows)));
  return [...denials, { actions: returningActions, exceptIds: [...readers], ofReturnValues: true }];
}

/**
 * Adds the policy to each table of secrets, in a stage that keeps data.
 * @param functions all functions of the stage by their row id
 */
export function protectSecrets({ stage, data }: StageContext, functions: Record<string, ServiceFunction>): void {
  if (!stage.keepsData) return;
  for (const [key, row] of Object.entries<TableRow>(tableRows) as [TableKey, TableRow][]) {
    const table = data.tables[key];
    // The policy of a table that exists already belongs to its owner.
    if (!row.isSecret || !(table instanceof Table)) continue;
    const stack = Stack.of(table);
    // A reference to the table from its own policy would be circular.
    const resourceName = deployedName(stage, row.name);
    const arn = stack.formatArn({ service: "dynamodb", resource: "table", resourceName });
    for (const denial of denialsFor(key)) {
      const exceptRoles = denial.exceptIds.flatMap((id) => functions[id]?.lambda.role?.roleArn ?? []);
      table.addToResourcePolicy(statementOf(denial, arn, [...exceptRoles, breakGlassRoleArn(stage, stack)]));
    }
  }
}

/**
 * Returns a statement with the roles by their ARN, which a session of a role has as `aws:PrincipalArn`. A principal
 * without an ARN, such as an AWS service, is denied too.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-principalarn
 */
function statementOf(denial: Denial, arn: string, exceptRoles: string[]): PolicyStatement {
  return new PolicyStatement({
    sid: sidOf(denial),
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: denial.actions.map((action) => `dynamodb:${action}`),
    resources: [arn, `${arn}/index/*`],
    conditions: {
      ArnNotEquals: { "aws:PrincipalArn": exceptRoles },
      ...(denial.ofReturnValues && returnsItem),
    },
  });
}

/** `StringNotEquals` alone would also match a call without the parameter. */
const returnsItem = {
  StringNotEquals: { "dynamodb:ReturnValues": "NONE" },
  Null: { "dynamodb:ReturnValues": "false" },
};

function sidOf({ exceptIds, ofReturnValues }: Denial): string {
  const subject = ofReturnValues ? "ReturnValues" : "";
  const files = exceptIds.length > 0 ? exceptIds.map(constructId) : ["BreakGlass"];
  return `${subject}Only${files.join("And")}`;
}

/** The role exists only if the operator has created it. */
function breakGlassRoleArn(stage: Stage, stack: Stack): string {
  const resourceName = stage.breakGlassRole ?? `${stackName(stage)}-break-glass`;
  return stack.formatArn({ service: "iam", region: "", resource: "role", resourceName });
}
