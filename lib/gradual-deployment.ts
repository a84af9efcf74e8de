import { LambdaDeploymentConfig, LambdaDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { rollbackAlarmsFor } from "./observability/alarms.ts";
import type { Stage } from "./stage.ts";
import type { Workers } from "./workers.ts";

/**
 * Moves the alias of a function to its new version for a tenth of the calls, and for all after five minutes in which no alarm
 * went off. Functions without an alias change at once.
 * @param options.isUrgent while one of the alarms is on, CodeDeploy begins no deployment, not even of what would end it:
 * this one is made without looking at them
 */
export function deployGradually(workers: Workers, { stage, isUrgent }: { stage: Stage; isUrgent: boolean }): void {
  for (const [file, worker] of Object.entries(workers)) {
    if (!worker.alias) continue;
    new LambdaDeploymentGroup(worker, "Deployment", {
      alias: worker.alias,
      deploymentConfig: LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
      alarms: rollbackAlarmsFor(worker, { file, alias: worker.alias, stage }),
      ignoreAlarmConfiguration: isUrgent,
      autoRollback: { deploymentInAlarm: true, failedDeployment: true, stoppedDeployment: true },
    });
  }
}
