import { Annotations, CfnOutput, Stack } from "aws-cdk-lib";
import type { Code } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { baseUrl, createApi } from "./api.ts";
import { createConsole } from "./console.ts";
import { deployGradually } from "./gradual-deployment.ts";
import { createJwtSecret, grantSecretRead } from "./jwt-secret.ts";
import { createKmsKey } from "./kms-key.ts";
import { suppressFindings } from "./nag-suppressions.ts";
import { constructId } from "./names.ts";
import { createAlarms } from "./observability/alarms.ts";
import { createDashboard, dashboardUrl } from "./observability/dashboard.ts";
import { createQueues } from "./queues.ts";
import type { StageContext } from "./service-function.ts";
import type { Stage } from "./stage.ts";
import { createTables } from "./tables.ts";
import { createWorkers } from "./workers.ts";

export interface ServiceStackProps {
  stage: Stage;
  /** The bundle of a function, by its path below `functions/`. */
  code: (file: string) => Code;
  /** The folder of the console's page. */
  page: string;
  /** This deployment mends what an alarm rings about: it goes out gradually all the same, and no alarm takes it back. */
  isUrgent?: boolean;
}

/** The whole service in one stage. Its parts follow from the rows in functions/{endpoints,workers,tables,queues}.ts. */
export class ServiceStack extends Stack {
  constructor(scope: Construct, id: string, { stage, code, page, isUrgent = false }: ServiceStackProps) {
    super(scope, id, { terminationProtection: stage.keepsData });
    // API Gateway goes on calling an authorizer as it was until it is deployed anew, which CDK does for this only when told.
    this.node.setContext("@aws-cdk/aws-apigateway:authorizerChangeDeploymentLogicalId", true);
    warnWithoutAlarmEmail(this, stage);

    const key = createKmsKey(this, stage);
    const tables = createTables(this, stage, key);
    const queues = createQueues(this, stage, key);
    const surroundings: StageContext = { stage, code, key, data: { tables, queues } };

    const workers = createWorkers(this, surroundings);
    const jwtSecret = createJwtSecret(this, stage, key);
    grantSecretRead(jwtSecret, workers);
    const api = createApi(this, surroundings, workers["auth/authorizer"]);
    if (stage.console) {
      const apiUrl = baseUrl(api.restApi, stage);
      createConsole(this, { stage, console: stage.console, apiUrl, page, key });
    }

    deployGradually(workers, { stage, isUrgent });

    const watched = { stage, api: api.restApi, functions: { ...api.functions, ...workers }, queues, tables };
    const alarms = createAlarms(this, watched);
    const dashboard = createDashboard(this, watched, alarms);

    this.output("ApiUrl", baseUrl(api.restApi, stage));
    this.output("EventsQueueUrl", queues.events.queue.queueUrl);
    this.output("JwtSecretArn", jwtSecret.secretArn);
    this.output("AlarmTopicArn", alarms.topic.topicArn);
    this.output("DashboardUrl", dashboardUrl(dashboard));
    for (const [name, table] of Object.entries(tables)) this.output(`${constructId(name)}TableName`, table.tableName);
    suppressFindings(this);
  }

  private output(id: string, value: string): void {
    new CfnOutput(this, id, { value });
  }
}

function warnWithoutAlarmEmail(stack: Stack, { keepsData, alarmEmail }: Stage): void {
  if (!keepsData || alarmEmail !== undefined) return;
  const todo = "Set alarmEmail in lib/stages.ts, or subscribe to the topic of the output AlarmTopicArn.";
  Annotations.of(stack).addWarningV2("alarms-reach-nobody", `The alarms of this stage reach nobody. ${todo}`);
}
