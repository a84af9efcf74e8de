import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { type Stage, validStage } from "./stage.ts";

/** The stages there are. What an option means, and what holds without it, stands in stage.ts and in the README. */
export const stages: readonly Stage[] = [
  {
    name: "dev",
    keepsData: false,
    logRetention: RetentionDays.ONE_WEEK,
    throttle: { requestsPerSecond: 50, burst: 100 },
    deploysGradually: false,
  },
  {
    name: "prod",
    keepsData: true,
    logRetention: RetentionDays.THREE_MONTHS,
    throttle: { requestsPerSecond: 1_000, burst: 2_000 },
    deploysGradually: true,
  },
];

const DEFAULT_STAGE = "dev";

export class UnknownStage extends Error {
  override readonly name = "UnknownStage";

  constructor(wanted: unknown) {
    const known = stages.map((stage) => stage.name).join(", ");
    super(`There is no stage ${JSON.stringify(wanted)}. Known stages: ${known}. Choose one with -c stage=<name>.`);
  }
}

/**
 * @param name the value of the CDK context `stage`; undefined = `dev`
 * @throws UnknownStage, or InvalidStage when its options are wrong
 */
export function stageNamed(name: unknown = DEFAULT_STAGE): Stage {
  const stage = stages.find((candidate) => candidate.name === name);
  if (stage === undefined) throw new UnknownStage(name);
  return validStage(stage);
}
