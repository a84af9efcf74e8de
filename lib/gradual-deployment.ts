import { LambdaDeploymentConfig, LambdaDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { rollbackAlarmsFor } from "./alarms.ts";
import type { Stage } from "./stage.ts";
import type { Workers } from "./workers.ts";

/**
 * Moves the alias of a function to its new version for a tenth of the calls, and for all after five minutes in which no alarm
 * went off. Functions without an alias change at once.
 */
export function deployGradually(workers: Workers, stage: Stage): void {
  for (const [file, worker] of Object.entries(workers)) {
    if (!worker.alias) continue;
    new LambdaDeploymentGroup(worker, "Deployment", {
      alias: worker.alias,
      deploymentConfig: LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
      alarms: rollbackAlarmsFor(worker, { file, alias: worker.alias, stage }),
      autoRollback: { deploymentInAlarm: true, failedDeployment: true, stoppedDeployment: true },
    });
  }
}
