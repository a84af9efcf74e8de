import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { type Stage, validateStage } from "./stage.ts";

/** The issuer of a stage that is not configured yet. It is no provider's. */
export const EXAMPLE_ISSUER = "https://id.example.com/";

/** The stages that can be deployed. The options and their defaults are documented in stage.ts. */
export const stages: readonly Stage[] = [
  {
    name: "dev",
    keepsData: false,
    bootstrapQualifier: "hooksdev",
    logRetention: RetentionDays.ONE_WEEK,
    throttle: { requestsPerSecond: 50, burst: 100 },
    deploysGradually: false,
  },
  {
    name: "prod",
    keepsData: true,
    // Replace both with those of the identity provider's tokens: no one can sign in with the example.
    jwt: { issuer: EXAMPLE_ISSUER, audience: "https://api.example.com" },
    bootstrapQualifier: "hooksprod",
    logRetention: RetentionDays.THREE_MONTHS,
    throttle: { requestsPerSecond: 1_000, burst: 2_000 },
    deploysGradually: true,
  },
];

const DEFAULT_STAGE = "dev";

/** The context of a deployment (`-c <key>=<value>`) is not valid. */
export class InvalidContextError extends Error {
  override readonly name = "InvalidContextError";
}

/**
 * Returns a stage by its name.
 * @param name value of the CDK context `stage`; undefined = `dev`
 * @throws InvalidContextError when no stage has this name
 * @throws InvalidStageError when an option of the stage is not valid
 */
export function stageNamed(name: unknown = DEFAULT_STAGE): Stage {
  const stage = stages.find((candidate) => candidate.name === name);
  if (stage === undefined) {
    const known = stages.map((each) => each.name).join(", ");
    throw new InvalidContextError(
      `No stage named ${JSON.stringify(name)}. Known stages: ${known}. Choose one with -c stage=<name>.`,
    );
  }
  return validateStage(stage);
}

/**
 * Reads the CDK context of a deployment: `-c stage=<name> -c urgent=true`.
 * @param context all keys, those of the CDK included: their names contain `/` or `:`
 * @throws InvalidContextError for any other key, and as stageNamed
 * @throws InvalidStageError as stageNamed
 */
export function readContext({ stage, urgent, ...others }: Record<string, unknown>) {
  const unknown = Object.keys(others).find((key) => !/[/:]/.test(key));
  if (unknown !== undefined) {
    throw new InvalidContextError(`Unknown context key ${JSON.stringify(unknown)}. Known keys: stage, urgent.`);
  }
  return { stage: stageNamed(stage), isUrgent: urgent === "true" };
}
