import type { Stage } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";

/*
 * The stacks that the tests inspect. Each is synthesized once per test run (synthesize.ts). Test an option with
 * `everyOption` or `otherForms` if possible: each further variant adds about a third of a second to all test runs.
 */

export interface Variant {
  stage: Stage;
  isUrgent?: boolean;
  /** Adds a bucket, which breaks rules of cdk-nag that are not acknowledged. */
  addsBucket?: boolean;
}

export const variants = {
  dev: { stage: stageNamed("dev") },
  /** The same as `dev`, with a bucket. */
  devWithBucket: { stage: stageNamed("dev"), addsBucket: true },
  devGradual: { stage: { ...stageNamed("dev"), deploysGradually: true } },
  prod: { stage: stageNamed("prod") },
  /** Contains every kind of stateful resource. */
  prodWithKey: { stage: { ...stageNamed("prod"), kmsKey: "create" }, isUrgent: true },
  everyOption: { stage: everyOption },
  /** The options that have two forms, in the one that `everyOption` does not use. */
  otherForms: {
    stage: {
      ...stageNamed("dev"),
      name: "other",
      kmsKey: "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
      eventProducers: [
        "arn:aws:iam::111122223333:role/pipeline",
        "arn:aws:iam::444455556666:role/pipeline",
        "arn:aws:events:eu-west-1:111122223333:rule/deployments",
        "arn:aws:sns:eu-west-1:111122223333:deployments",
      ],
      corsOrigins: ["https://app.example.com"],
      alarms: false,
      deploysGradually: true,
      throttle: { requestsPerSecond: 4, burst: 15 },
      domain: {
        name: "api.example.com",
        certificateArn: "arn:aws:acm:eu-west-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
      },
      console: {
        domain: {
          name: "console.example.com",
          certificateArn: "arn:aws:acm:us-east-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
        },
      },
    },
  },
  /** A console with CloudFront's own domain name. */
  console: { stage: { ...stageNamed("dev"), name: "console", console: true } },
} as const satisfies Record<string, Variant>;

export type VariantName = keyof typeof variants;
