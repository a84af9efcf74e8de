import { AsyncLocalStorage } from "node:async_hooks";
import { endpoints } from "../../functions/manifest/endpoints.ts";
import type { Grants } from "../../functions/manifest/grants-schema.ts";
import { deadLetterName, type QueueRow, queues } from "../../functions/manifest/queues.ts";
import { type TableKey, type TableRow, tables } from "../../functions/manifest/tables.ts";
import { workers } from "../../functions/manifest/workers.ts";
import { dynamo, secretsManager, sqs } from "../../functions/platform/aws.ts";

/*
 * IAM on this machine: a function may call what its row uses and is told where that is; all else is refused. So a right that
 * is missing shows here and not after a deployment. What runs outside any function (commands, seeding, the pollers) is free.
 */

/** An IAM action on a resource, which goes by its row: `dynamodb:Query on table deliveries/index/due`. */
export type Right = `${string}:${string} on ${string}`;

/** As AWS says it. It is no outage, and nothing tries the call again. */
export class AccessDenied extends Error {
  override readonly name = "AccessDeniedException";
  readonly $fault = "client";

  constructor(file: string, right: Right) {
    const [action, resource] = right.split(" on ");
    const reason = "because its row in functions/ does not use it";
    super(`User: ${file} is not authorized to perform: ${action} on resource: ${resource} ${reason}`);
  }
}

/** A function asks where something is that its row does not use. On AWS the variable is not set. */
export class EnvNotGranted extends Error {
  override readonly name = "NotTold";

  constructor(file: string, variable: string) {
    super(`${file} asks for ${variable}, of a resource that its row in functions/ does not use`);
  }
}

/** One run of a function, with whatever it leaves behind: timers, promises that nobody waits for. */
interface Invocation {
  file: string;
  /** The first that it was refused. */
  refusal?: AccessDenied | EnvNotGranted;
}

const invocations = new AsyncLocalStorage<Invocation>();

/** Is told what the functions call, granted or not. Tests listen here. */
export const trail = { note(_file: string, _right: Right): void {} };

/**
 * Runs a function with the rights of its row.
 * @throws AccessDenied or NotTold when it was refused something, even if it has got over that: nobody would miss what it left
 * out before it is needed
 */
export async function withGrantsOf<Result>(file: string, run: () => Promise<Result>): Promise<Result> {
  enforce();
  const invocation: Invocation = { file };
  const result = await invocations.run(invocation, run);
  if (invocation.refusal) throw invocation.refusal;
  return result;
}

interface Resource {
  name: string;
  /** Environment variable that holds the name, URL or ARN by which it is called. */
  env: string;
}

const tableResource = ({ name, env }: TableRow): Resource => ({ name: `table ${name}`, env });
const queueResource = ({ name, env }: QueueRow): Resource => ({ name: `queue ${name}`, env });
const deadLetters = (row: QueueRow): Resource => ({ name: `queue ${deadLetterName(row)}`, env: row.deadLetterEnv });
const jwtSecret: Resource = { name: "secret JwtSecret", env: "JWT_SECRET_ARN" };

const resources: Resource[] = [
  ...Object.values(tables).map(tableResource),
  ...Object.values(queues).flatMap((row) => [queueResource(row), deadLetters(row)]),
  jwtSecret,
];

/** What a row grants: the action, on the resource or a part of it. */
function grantsOf(uses: Grants): { action: string; resource: Resource; part?: string }[] {
  const { sendsTo = [], rejectsTo = [], queries = [], reads = [] } = uses;
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
    ...reads.map(() => ({ action: "secretsmanager:GetSecretValue", resource: jwtSecret })),
  ];
}

/** The rights of a row, as a set to look into. */
export function allowedCallsOf(uses: Grants): Set<Right> {
  return new Set(
    grantsOf(uses).map(({ action, resource, part = "" }) => `${action} on ${resource.name}${part}` as Right),
  );
}

const rows: { file: string; uses: Grants }[] = [...endpoints, ...workers];
const rightsByFile = new Map(rows.map(({ file, uses }) => [file, allowedCallsOf(uses)]));
const hiddenByFile = new Map(rows.map(({ file, uses }) => [file, variablesHiddenFrom(uses)]));

function variablesHiddenFrom(uses: Grants): Set<string> {
  const told = new Set(grantsOf(uses).map(({ resource }) => resource.env));
  return new Set(resources.map(({ env }) => env).filter((env) => !told.has(env)));
}

let environment = process.env;
let isEnforced = false;

/** Stands between the functions and the AWS clients, and between them and the environment. Once: the clients are kept. */
function enforce(): void {
  if (isEnforced) return;
  isEnforced = true;
  // Ahead of all that the SDK does: what is refused is neither sent nor tried again.
  const first = { step: "initialize", priority: "high", name: "permissions" } as const;
  dynamo().middlewareStack.add(checked(tableRights), first);
  sqs().middlewareStack.add(checked(queueRights), first);
  secretsManager().middlewareStack.add(checked(secretRights), first);
  environment = process.env;
  process.env = new Proxy(environment, { get: (_, name) => tell(String(name)) });
}

function tell(variable: string): string | undefined {
  const invocation = invocations.getStore();
  const value = environment[variable];
  if (!invocation || !hiddenByFile.get(invocation.file)?.has(variable)) return value;
  if (value !== undefined) invocation.refusal ??= new EnvNotGranted(invocation.file, variable);
  return undefined;
}

/** The rights that a call takes. */
type RightsNeeded<Input> = (operation: string, input: Input) => Right[];

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

function check(invocation: Invocation, needed: Right[]): void {
  const { file } = invocation;
  for (const right of needed) {
    trail.note(file, right);
    if (rightsByFile.get(file)?.has(right)) continue;
    const denied = new AccessDenied(file, right);
    invocation.refusal ??= denied;
    throw denied;
  }
}

interface TableInput {
  TableName?: string;
  IndexName?: string;
  RequestItems?: Record<string, unknown>;
  TransactItems?: Record<string, TableInput>[];
  ReturnValues?: string;
  ReturnValuesOnConditionCheckFailure?: string;
}

/**
 * A batch takes its right on each of its tables, a transaction the rights of its items. A write that returns what was there
 * reads, where items are secret.
 */
function tableRights(operation: string, input: TableInput): Right[] {
  const { TableName, IndexName, RequestItems, TransactItems } = input;
  if (TransactItems) {
    return TransactItems.flatMap(Object.entries).flatMap(([kind, item]) => tableRights(itemAction(kind), item));
  }
  if (RequestItems) return Object.keys(RequestItems).flatMap((table) => tableRights(operation, { TableName: table }));
  const index = IndexName === undefined ? "" : `/index/${IndexName}`;
  const resource = resourceAt(TableName);
  const reads = secretTables.has(resource) && returnsItem(input) ? [`dynamodb:GetItem on ${resource}` as const] : [];
  return [`dynamodb:${operation} on ${resource}${index}`, ...reads];
}

const secretTables = new Set(
  Object.values<TableRow>(tables).flatMap((row) => (row.isSecret ? [tableResource(row).name] : [])),
);

const returnsItem = ({ ReturnValues = "NONE", ReturnValuesOnConditionCheckFailure = "NONE" }: TableInput): boolean =>
  ReturnValues !== "NONE" || ReturnValuesOnConditionCheckFailure !== "NONE";

/** `Put` -> `PutItem`, and so on: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html */
const itemAction = (kind: string): string => `${kind}Item`;

/** A batch takes the right to do it one by one. */
function queueRights(operation: string, { QueueUrl }: { QueueUrl?: string }): Right[] {
  return [`sqs:${operation.replace(/Batch$/, "")} on ${resourceAt(QueueUrl)}`];
}

function secretRights(operation: string, { SecretId }: { SecretId?: string }): Right[] {
  return [`secretsmanager:${operation} on ${resourceAt(SecretId)}`];
}

function resourceAt(location = "*"): string {
  return resources.find(({ env }) => environment[env] === location)?.name ?? location;
}
