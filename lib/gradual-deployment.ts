import { LambdaDeploymentConfig, LambdaDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { createRollbackAlarms } from "./observability/rollback-alarms.ts";
import type { Stage } from "./stage.ts";
import type { Workers } from "./workers.ts";

/**
 * Deploys the functions that have an alias gradually: the new version gets a tenth of the calls, and all of them after
 * five minutes without an alarm. Functions without an alias change at once.
 * @param options.isUrgent ignores the alarms for this deployment. Otherwise CodeDeploy starts no deployment while one
 * of them is in ALARM, even if the deployment would fix the cause.
 */
export function deployGradually(workers: Workers, { stage, isUrgent }: { stage: Stage; isUrgent: boolean }): void {
  for (const [file, worker] of Object.entries(workers)) {
    if (!worker.alias) continue;
    new LambdaDeploymentGroup(worker, "Deployment", {
      alias: worker.alias,
      deploymentConfig: LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
      alarms: createRollbackAlarms(worker, { file, alias: worker.alias, stage }),
      ignoreAlarmConfiguration: isUrgent,
      autoRollback: { deploymentInAlarm: true, failedDeployment: true, stoppedDeployment: true },
    });
  }
}
