import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { type Stage, validateStage } from "./stage.ts";

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
    bootstrapQualifier: "hooksprod",
    logRetention: RetentionDays.THREE_MONTHS,
    throttle: { requestsPerSecond: 1_000, burst: 2_000 },
    deploysGradually: true,
  },
];

const DEFAULT_STAGE = "dev";

export class UnknownStageError extends Error {
  override readonly name = "UnknownStageError";

  constructor(wanted: unknown) {
    const known = stages.map((stage) => stage.name).join(", ");
    super(`No stage named ${JSON.stringify(wanted)}. Known stages: ${known}. Choose one with -c stage=<name>.`);
  }
}

/**
 * Returns a stage by its name.
 * @param name value of the CDK context `stage`; undefined = `dev`
 * @throws UnknownStageError when no stage has this name
 * @throws InvalidStageError when an option of the stage is not valid
 */
export function stageNamed(name: unknown = DEFAULT_STAGE): Stage {
  const stage = stages.find((candidate) => candidate.name === name);
  if (stage === undefined) throw new UnknownStageError(name);
  return validateStage(stage);
}

/**
 * Reads the CDK context of a deployment: `-c stage=<name> -c urgent=true`.
 * @param get returns the value of a context key; undefined = not set
 * @throws UnknownStageError, InvalidStageError as stageNamed
 */
export function readContext(get: (key: string) => unknown): { stage: Stage; isUrgent: boolean } {
  return { stage: stageNamed(get("stage")), isUrgent: get("urgent") === "true" };
}
