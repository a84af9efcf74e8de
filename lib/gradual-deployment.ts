import { LambdaApplication, LambdaDeploymentConfig, LambdaDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import { createRollbackAlarms } from "./observability/rollback-alarms.ts";
import type { Stage } from "./stage.ts";
import type { Workers } from "./workers.ts";

/**
 * Deploys the functions that have an alias gradually: the new version gets a tenth of the calls, and all of them after
 * five minutes without an alarm. Functions without an alias change at once. All share one application and one role of
 * CodeDeploy, because a stack has at most 500 resources.
 * @param options.isUrgent ignores the alarms for this deployment. Otherwise CodeDeploy starts no deployment while one
 * of them is in ALARM, even if the deployment would fix the cause.
 */
export function deployGradually(
  scope: Construct,
  workers: Workers,
  { stage, isUrgent }: { stage: Stage; isUrgent: boolean },
): void {
  if (!stage.deploysGradually) return;
  const folder = new Construct(scope, "GradualDeployment");
  const application = new LambdaApplication(folder, "Application");
  // Each deployment group attaches AWS's policy for this purpose to it.
  const role = new Role(folder, "Role", { assumedBy: new ServicePrincipal("codedeploy.amazonaws.com") });
  for (const [id, worker] of Object.entries(workers)) {
    if (!worker.alias) continue;
    new LambdaDeploymentGroup(worker, "Deployment", {
      application,
      role,
      alias: worker.alias,
      deploymentConfig: LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
      alarms: createRollbackAlarms(worker, { id, alias: worker.alias, stage }),
      ignoreAlarmConfiguration: isUrgent,
      autoRollback: { deploymentInAlarm: true, failedDeployment: true, stoppedDeployment: true },
    });
  }
}
