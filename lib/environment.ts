import { Token } from "aws-cdk-lib";
import type { Grants, SettingKey } from "../functions/foundation/manifest/grants-schema.ts";
import { queues as queueRows } from "../functions/foundation/manifest/queues.ts";
import { tables as tableRows } from "../functions/foundation/manifest/tables.ts";
import { topics as topicRows } from "../functions/foundation/manifest/topics.ts";
import { type StageResources, tablesOf } from "./grants.ts";
import { type SettingGroup, type SettingRow, settingRows } from "./settings.ts";
import { InvalidStageError, type Stage } from "./stage.ts";

/* The environment variables of a function, which functions/foundation/platform/env.ts reads. */

type Variables = Record<string, string | undefined>;

interface FunctionInputs {
  /** Path below `functions/`. */
  id: string;
  uses: Grants;
  settings?: readonly SettingKey[];
  /** Overrides the variables that follow from `uses` and the stage. */
  environment?: Variables;
}

/**
 * Returns the environment variables of a function: the stage, the locations of the resources it uses, and the options
 * of the stage that it reads. An absent option sets no variable: its default is defined in functions/foundation/platform/env.ts.
 * @throws InvalidStageError when they are more than Lambda accepts
 */
export function environmentFor(
  { id, uses, settings = [], environment }: FunctionInputs,
  stage: Stage,
  data: StageResources,
): Record<string, string> {
  const variables: Variables = {
    STAGE: stage.name,
    ...locationsOf(uses, data),
    ...(settings.includes("credentials") && {
      ...settingsOf(stage, "jwt", "jwks"),
      KEEPS_DATA: stage.keepsData ? "true" : undefined,
    }),
    ...(settings.includes("workflowIssuers") && { OIDC_ISSUERS: workflowIssuers(stage) }),
    ...(settings.includes("permissions") && { PERMISSIONS: json(stage.permissions) }),
    ...(settings.includes("importedKeys") && { IMPORTED_KEYS: json(stage.importedKeys) }),
    ...(settings.includes("importedKeysPepper") && { IMPORTED_KEYS_PEPPER_ARN: stage.importedKeysPepper?.secretArn }),
    ...(settings.includes("legacySignatureHeader") && { LEGACY_SIGNATURE_HEADER: json(stage.legacySignatureHeader) }),
    ...(tablesOf(uses).includes("deliveries") && settingsOf(stage, "deliveries")),
    ...environment,
  };
  const set = Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined);
  rejectTooLong(set, id, stage);
  return Object.fromEntries(set);
}

/** The text of an option: a list has commas, and a map of claims is JSON. */
const textOf = (value: unknown): string =>
  Object(value) !== value || Array.isArray(value) ? String(value) : JSON.stringify(value);

const json = (value: object | undefined): string | undefined => value && JSON.stringify(value);

/**
 * Lambda measures all variables together, as JSON, in which each quote of a JSON value is escaped.
 * https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
 */
const MAX_BYTES = 4_096;

/** Length of a name that is known only when the stage is deployed: at least that of any ARN or URL of this stack. */
const UNKNOWN = "x".repeat(200);

/** @throws InvalidStageError that names the option with the longest variable */
function rejectTooLong(variables: [string, string][], id: string, { name }: Stage): void {
  // The ARN of the JWT secret is added later (jwt-secret.ts).
  const known = variables.map(([key, value]) => [key, Token.isUnresolved(value) ? UNKNOWN : value] as const);
  const bytes = Buffer.byteLength(JSON.stringify({ ...Object.fromEntries(known), JWT_SECRET_ARN: UNKNOWN }));
  if (bytes <= MAX_BYTES) return;
  const [[longest = ""] = []] = known.toSorted(([, one], [, other]) => other.length - one.length);
  const option =
    { OIDC_ISSUERS: "workflowIssuers", PERMISSIONS: "permissions", CORS_ORIGINS: "corsOrigins" }[longest] ?? longest;
  const message = `is too long: the environment of ${id} would have ${bytes} bytes, and Lambda accepts ${MAX_BYTES}. Use fewer or shorter entries`;
  throw new InvalidStageError(name, [{ code: "custom", path: [option], message, input: undefined }]);
}

/** Names of tables, URLs of queues and ARNs of topics. The authorizer gets the ARN of the JWT secret in jwt-secret.ts. */
function locationsOf(uses: Grants, { tables, queues, topics }: StageResources): Variables {
  const { sendsTo = [], rejectsTo = [], publishesTo = [] } = uses;
  return Object.fromEntries([
    ...tablesOf(uses).map((key) => [tableRows[key].env, tables[key].tableName]),
    ...sendsTo.map((key) => [queueRows[key].env, queues[key].queue.queueUrl]),
    ...rejectsTo.map((key) => [queueRows[key].deadLetterEnv, queues[key].deadLetters.queueUrl]),
    ...publishesTo.map((key) => [topicRows[key].env, topics[key].topic.topicArn]),
  ]);
}

/** Returns the variables of the settings that these parts of the stage set. */
function settingsOf(stage: Stage, ...groups: SettingGroup[]): Variables {
  const options: Variables = Object.fromEntries(
    groups.flatMap((group) =>
      Object.entries(stage[group] ?? {}).map(([part, value]) => [`${group}.${part}`, textOf(value)]),
    ),
  );
  const rows = Object.entries<SettingRow>(settingRows);
  return Object.fromEntries(
    rows.flatMap(([variable, { option = "" }]) => (option in options ? [[variable, options[option]]] : [])),
  );
}

/** Returns the setting that functions/identity/trusted-workflows/workflow-issuer.ts parses. */
function workflowIssuers({ workflowIssuers: issuers }: Stage): string | undefined {
  return issuers && JSON.stringify(issuers.map(({ jwksUri, ...issuer }) => ({ ...issuer, jwks_uri: jwksUri })));
}
