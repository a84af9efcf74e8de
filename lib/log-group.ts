import { LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { KmsKey } from "./kms-key.ts";
import { deletedOnlyByRollback } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";

/** Creates a log group with the retention, the removal policy and the key of a stage. */
export function createLogGroup(
  scope: Construct,
  id: string,
  { stage, key }: { stage: Stage; key?: KmsKey | undefined },
): LogGroup {
  return new LogGroup(scope, id, {
    retention: stage.logRetention,
    removalPolicy: deletedOnlyByRollback(stage),
    ...(key && { encryptionKey: key }),
  });
}
