import { AsyncLocalStorage } from "node:async_hooks";
import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import type { Grants, SecretKey } from "../../functions/foundation/manifest/grants-schema.ts";
import { deadLetterName, type QueueRow, queues } from "../../functions/foundation/manifest/queues.ts";
import { type TableKey, type TableRow, tables } from "../../functions/foundation/manifest/tables.ts";
import { type TopicRow, topics } from "../../functions/foundation/manifest/topics.ts";
import { dynamo, secretsManager, sns, sqs } from "../../functions/foundation/platform/aws.ts";

/*
 * IAM in a local run: a function may make the calls that its row grants and reads the names of those resources; any other
 * call is denied. So a missing grant is found before a deployment. Code outside of functions (programs, seeding, the pollers)
 * is not restricted.
 */

/** An IAM action on a resource, named after its row: `dynamodb:Query on table deliveries/index/due`. */
export type Right = `${string}:${string} on ${string}`;

/** A call was denied, with the error of AWS. It does not count as an outage and is not retried. */
export class AccessDenied extends Error {
  override readonly name = "AccessDeniedException";
  readonly $fault = "client";

  constructor(id: string, right: Right) {
    const [action, resource] = right.split(" on ");
    const reason = "because its row in functions/foundation/manifest does not grant it";
    super(`User: ${id} is not authorized to perform: ${action} on resource: ${resource} ${reason}`);
  }
}

/** A function read the environment variable of a resource that its row does not grant. On AWS it is not set. */
export class EnvNotGranted extends Error {
  override readonly name = "EnvNotGranted";

  constructor(id: string, variable: string) {
    super(`${id} reads ${variable}, of a resource that its row in functions/foundation/manifest does not grant`);
  }
}

/** One invocation of a function, including timers and promises that outlive it. */
interface Invocation {
  id: string;
  /** The first denied call or variable. */
  denial?: AccessDenied | EnvNotGranted;
}

const invocations = new AsyncLocalStorage<Invocation>();

/** Receives each call of a function, granted or not. Tests replace `note`. */
export const trail = { note(_file: string, _right: Right): void {} };

/**
 * Runs a function with the grants of its row.
 * @throws AccessDenied or EnvNotGranted when anything was denied, even if the function handled that error: otherwise the
 * missing grant would stay unnoticed until the result is needed
 */
export async function withGrantsOf<Result>(id: string, run: () => Promise<Result>): Promise<Result> {
  enforce();
  const invocation: Invocation = { id };
  const result = await invocations.run(invocation, run);
  if (invocation.denial) throw invocation.denial;
  return result;
}

interface Resource {
  name: string;
  /** Environment variable that holds its name, URL or ARN. */
  env: string;
}

const tableResource = ({ name, env }: TableRow): Resource => ({ name: `table ${name}`, env });
const queueResource = ({ name, env }: QueueRow): Resource => ({ name: `queue ${name}`, env });
const deadLetters = (row: QueueRow): Resource => ({ name: `queue ${deadLetterName(row)}`, env: row.deadLetterEnv });
const topicResource = ({ name, env }: TopicRow): Resource => ({ name: `topic ${name}`, env });
const secretResources: Record<SecretKey, Resource> = {
  jwtSecret: { name: "secret JwtSecret", env: "JWT_SECRET_ARN" },
  signatureSecret: { name: "secret SignatureSecret", env: "SIGNATURE_SECRET_ARN" },
};

const resources: Resource[] = [
  ...Object.values(tables).map(tableResource),
  ...Object.values(queues).flatMap((row) => [queueResource(row), deadLetters(row)]),
  ...Object.values(topics).map(topicResource),
  ...Object.values(secretResources),
];

/** Lists what a row grants: an action on a resource, or on a part of it such as an index. */
function grantsOf(uses: Grants): { action: string; resource: Resource; part?: string }[] {
  const { sendsTo = [], rejectsTo = [], publishesTo = [], queries = [], reads = [] } = uses;
  return [
    ...Object.entries(uses.tables ?? {}).flatMap(([key, actions]) =>
      actions.map((action) => ({ action: `dynamodb:${action}`, resource: tableResource(tables[key as TableKey]) })),
    ),
    ...queries.map((index) => {
      const [key, name] = index.split("/") as [TableKey, string];
      return { action: "dynamodb:Query", resource: tableResource(tables[key]), part: `/index/${name}` };
    }),
    ...sendsTo.map((key) => ({ action: "sqs:SendMessage", resource: queueResource(queues[key]) })),
    ...rejectsTo.map((key) => ({ action: "sqs:SendMessage", resource: deadLetters(queues[key]) })),
    ...publishesTo.map((key) => ({ action: "sns:Publish", resource: topicResource(topics[key]) })),
    ...reads.map((key) => ({ action: "secretsmanager:GetSecretValue", resource: secretResources[key] })),
  ];
}

/** Returns the rights that a row grants. */
export function allowedCallsOf(uses: Grants): Set<Right> {
  return new Set(
    grantsOf(uses).map(({ action, resource, part = "" }) => `${action} on ${resource.name}${part}` as Right),
  );
}

const writesOnlyById = new Map(functionRows.map(({ id, uses }) => [id, uses.writesOnly ?? {}]));
const rightsById = new Map(functionRows.map(({ id, uses }) => [id, allowedCallsOf(uses)]));
const hiddenById = new Map(functionRows.map(({ id, uses }) => [id, variablesHiddenFrom(uses)]));

function variablesHiddenFrom(uses: Grants): Set<string> {
  const granted = new Set(grantsOf(uses).map(({ resource }) => resource.env));
  return new Set(resources.map(({ env }) => env).filter((env) => !granted.has(env)));
}

let environment = process.env;
let isEnforced = false;

/** Installs the checks in the AWS clients and in `process.env`. Once, because the clients are cached. */
function enforce(): void {
  if (isEnforced) return;
  isEnforced = true;
  // The first middleware of the SDK: a denied call is neither sent nor retried.
  const first = { step: "initialize", priority: "high", name: "permissions" } as const;
  dynamo().middlewareStack.add(checked(tableRights), first);
  sqs().middlewareStack.add(checked(queueRights), first);
  sns().middlewareStack.add(checked(topicRights), first);
  secretsManager().middlewareStack.add(checked(secretRights), first);
  // A copy: each read of the variables of a process is a call into its runtime.
  environment = { ...process.env };
  process.env = new Proxy(environment, { get: (_, name) => readVariable(String(name)) });
}

function readVariable(variable: string): string | undefined {
  const invocation = invocations.getStore();
  const value = environment[variable];
  if (!invocation || !hiddenById.get(invocation.id)?.has(variable)) return value;
  invocation.denial ??= new EnvNotGranted(invocation.id, variable);
  return undefined;
}

/** A right that a call needs; for an item of a table also its partition key. */
interface Need {
  right: Right;
  table?: TableKey | undefined;
  partitionKey?: unknown;
}

/** Returns the rights that a call needs. */
type RightsNeeded<Input> = (operation: string, input: Input) => Need[];

function checked<Input>(rightsNeeded: RightsNeeded<Input>) {
  return <Args extends { input: unknown }, Output>(
    next: (args: Args) => Promise<Output>,
    { commandName = "" }: { commandName?: string },
  ) =>
    async (args: Args): Promise<Output> => {
      const invocation = invocations.getStore();
      if (invocation) check(invocation, rightsNeeded(commandName.replace(/Command$/, ""), args.input as Input));
      return next(args);
    };
}

function check(invocation: Invocation, needed: Need[]): void {
  const { id } = invocation;
  for (const need of needed) {
    const { right } = need;
    trail.note(id, right);
    if (rightsById.get(id)?.has(right) && isItemAllowed(id, need)) continue;
    const denied = new AccessDenied(id, right);
    invocation.denial ??= denied;
    throw denied;
  }
}

const writes = /^dynamodb:(Put|Update|Delete)Item /;

function isItemAllowed(id: string, { right, table, partitionKey }: Need): boolean {
  const beginning = table && writesOnlyById.get(id)?.[table];
  return beginning === undefined || !writes.test(right) || String(partitionKey).startsWith(beginning);
}

interface TableInput {
  TableName?: string;
  IndexName?: string;
  RequestItems?: Record<string, unknown>;
  TransactItems?: Record<string, TableInput>[];
  ReturnValues?: string;
  ReturnValuesOnConditionCheckFailure?: string;
  Item?: Record<string, unknown>;
  Key?: Record<string, unknown>;
}

/**
 * A batch needs its right on each of its tables, and a transaction the rights of its items. A write to a table of secrets that
 * returns the old item also needs the right to read. On AWS that is so for `ReturnValues` only: IAM has no condition key for
 * `ReturnValuesOnConditionCheckFailure`, so a function that uses it on such a table must not get past a local run.
 */
function tableRights(operation: string, input: TableInput): Need[] {
  const { TableName, IndexName, RequestItems, TransactItems, Item, Key } = input;
  if (TransactItems) {
    return TransactItems.flatMap(Object.entries).flatMap(([kind, item]) => tableRights(itemAction(kind), item));
  }
  if (RequestItems) return Object.keys(RequestItems).flatMap((table) => tableRights(operation, { TableName: table }));
  const index = IndexName === undefined ? "" : `/index/${IndexName}`;
  const resource = resourceAt(TableName);
  const table = tableKeys.find((key) => tableResource(tables[key]).name === resource);
  const partitionKey = table && (Item ?? Key)?.[tables[table].partitionKey];
  const reads =
    secretTables.has(resource) && returnsItem(input) ? [{ right: `dynamodb:GetItem on ${resource}` as const }] : [];
  return [{ right: `dynamodb:${operation} on ${resource}${index}`, table, partitionKey }, ...reads];
}

const tableKeys = Object.keys(tables) as TableKey[];
const secretTables = new Set(
  Object.values<TableRow>(tables).flatMap((row) => (row.isSecret ? [tableResource(row).name] : [])),
);

const returnsItem = ({ ReturnValues = "NONE", ReturnValuesOnConditionCheckFailure = "NONE" }: TableInput): boolean =>
  ReturnValues !== "NONE" || ReturnValuesOnConditionCheckFailure !== "NONE";

/** `Put` -> `PutItem`, and so on: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html */
const itemAction = (kind: string): string => `${kind}Item`;

/** A batch call needs the right of the single call. */
function queueRights(operation: string, { QueueUrl }: { QueueUrl?: string }): Need[] {
  return [{ right: `sqs:${operation.replace(/Batch$/, "")} on ${resourceAt(QueueUrl)}` }];
}

function topicRights(operation: string, { TopicArn }: { TopicArn?: string }): Need[] {
  return [{ right: `sns:${operation} on ${resourceAt(TopicArn)}` }];
}

function secretRights(operation: string, { SecretId }: { SecretId?: string }): Need[] {
  return [{ right: `secretsmanager:${operation} on ${resourceAt(SecretId)}` }];
}

/** The names of resources by their location. Read again for one that is not known, as after a new engine has started. */
let names = new Map<string | undefined, string>();

function resourceAt(location = "*"): string {
  if (!names.has(location)) names = new Map(resources.map(({ env, name }) => [environment[env], name]));
  return names.get(location) ?? location;
}
