import { RemovalPolicy } from "aws-cdk-lib";
import type { Stage } from "./stage.ts";

type Kept = Pick<Stage, "keepsData">;

/**
 * Returns the policy of what holds data that nothing can restore: tables and the KMS key. CloudFormation never deletes
 * it in a stage that keeps data, not even when it rolls back the operation that created it.
 */
export const neverDeleted = ({ keepsData }: Kept): RemovalPolicy =>
  keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY;

/**
 * Returns the policy of queues, logs and the secret: in a stage that keeps data they outlive the stack, but if the
 * operation that creates one is rolled back, it is deleted. Left behind, it would block the next attempt by its name.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html
 */
export const deletedOnlyByRollback = ({ keepsData }: Kept): RemovalPolicy =>
  keepsData ? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE : RemovalPolicy.DESTROY;
