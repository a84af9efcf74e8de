import { Token } from "aws-cdk-lib";
import type { Grants, SettingKey } from "../functions/foundation/manifest/grants-schema.ts";
import { queues as queueRows } from "../functions/foundation/manifest/queues.ts";
import { tables as tableRows } from "../functions/foundation/manifest/tables.ts";
import { topics as topicRows } from "../functions/foundation/manifest/topics.ts";
import { EVENTS_PATH } from "./event-layer.ts";
import { type StageResources, tablesOf } from "./grants.ts";
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
  const read = tablesOf(uses).includes("deliveries") ? [...settings, "deliveries" as const] : settings;
  const options = read.flatMap((key) => Object.entries(optionVariables[key](stage)));
  const variables = {
    STAGE: stage.name,
    ...locationsOf(uses, data),
    ...Object.fromEntries(options.map(([name, value]) => [name, typeof value === "string" ? value : json(value)])),
    ...environment,
  };
  const set = Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined);
  rejectTooLong(set, id, stage);
  return Object.fromEntries(set);
}

/** The variables that options of a stage set, by the `settings` of a row. Values that are no text become JSON. */
const optionVariables: Record<SettingKey | "deliveries", (stage: Stage) => Record<string, unknown>> = {
  credentials: ({ jwt, jwks, keepsData }) => ({
    JWT_ISSUER: jwt?.issuer,
    JWT_AUDIENCE: jwt?.audience && [jwt.audience].flat().join(","),
    JWT_REQUIRED_CLAIMS: jwt?.requiredClaims,
    JWT_MAX_LIFETIME_SECONDS: jwt?.maxLifetimeSeconds,
    JWT_REQUIRES_ISSUED_AT: jwt?.requiresIssuedAt,
    JWKS_ISSUER: jwks?.issuer,
    JWKS_AUDIENCE: jwks?.audience && [jwks.audience].flat().join(","),
    JWKS_AUDIENCE_CLAIM: jwks?.audienceClaim,
    JWKS_URI: jwks?.uri,
    JWKS_SHARES_USERS: jwks?.sharesUsers,
    KEEPS_DATA: keepsData || undefined,
  }),
  // functions/identity/trusted-workflows/workflow-issuer.ts parses it.
  workflowIssuers: ({ workflowIssuers }) => ({
    OIDC_ISSUERS: workflowIssuers?.map(({ jwksUri, ...issuer }) => ({ ...issuer, jwks_uri: jwksUri })),
  }),
  permissions: ({ permissions }) => ({ PERMISSIONS: permissions }),
  importedKeys: ({ importedKeys }) => ({ IMPORTED_KEYS: importedKeys }),
  importedKeysPepper: ({ importedKeysPepper }) => ({ IMPORTED_KEYS_PEPPER_ARN: importedKeysPepper?.secretArn }),
  secretScanning: ({ secretScanningKeysUrl }) => ({ SECRET_SCANNING_KEYS_URL: secretScanningKeysUrl }),
  legacySignatureHeader: ({ legacySignatureHeader }) => ({ LEGACY_SIGNATURE_HEADER: legacySignatureHeader }),
  events: ({ events }) => ({ EVENTS: events && EVENTS_PATH }),
  deliveries: ({ deliveries }) => ({
    RETRY_SCHEDULE: deliveries?.retrySchedule?.join(","),
    DISABLE_AFTER_SECONDS: deliveries?.disableAfterSeconds,
  }),
};

const json = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));

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
