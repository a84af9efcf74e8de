import { CfnOutput, DefaultStackSynthesizer, Stack } from "aws-cdk-lib";
import type { Code } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { baseUrl, createApi } from "./api.ts";
import { createConsole } from "./console.ts";
import { createEventLayer } from "./event-layer.ts";
import { deployGradually } from "./gradual-deployment.ts";
import { createJwtSecret } from "./jwt-secret.ts";
import { createKmsKey } from "./kms-key.ts";
import { suppressFindings } from "./nag-suppressions.ts";
import { constructId, SERVICE } from "./names.ts";
import { createAlarms } from "./observability/alarms.ts";
import { createDashboard, dashboardUrl } from "./observability/dashboard.ts";
import { createQueues } from "./queues.ts";
import { grantSecretRead } from "./secret-grants.ts";
import { protectSecrets } from "./secret-tables.ts";
import type { StageContext } from "./service-function.ts";
import { createSignatureSecret } from "./signature-secret.ts";
import type { Stage } from "./stage.ts";
import { createTables } from "./tables.ts";
import { createTopics } from "./topics.ts";
import { createWorkers } from "./workers.ts";

export interface ServiceStackProps {
  stage: Stage;
  /** Returns the bundle of a function by its path below `functions/`. */
  code: (file: string) => Code;
  /** Folder with the files of the console's page. */
  page: string;
  /** Deploys although a rollback alarm is in ALARM: still gradually, but no alarm rolls it back. Default: false. */
  isUrgent?: boolean;
}

/**
 * The whole service in one stage. Tables, queues, topics, functions, routes and permissions follow from the rows in
 * functions/foundation/manifest/.
 */
export class ServiceStack extends Stack {
  constructor(scope: Construct, id: string, { stage, code, page, isUrgent = false }: ServiceStackProps) {
    const synthesizer = new DefaultStackSynthesizer({ qualifier: stage.bootstrapQualifier });
    super(scope, id, {
      description: `API keys and deployment webhooks, stage ${stage.name}`,
      // CloudFormation adds them to all resources, for the bill and for policies of the account.
      tags: { service: SERVICE, stage: stage.name },
      terminationProtection: stage.keepsData,
      synthesizer,
      ...(stage.env && { env: stage.env }),
    });

    const key = createKmsKey(this, stage);
    const tables = createTables(this, stage, key);
    const queues = createQueues(this, stage, key);
    const topics = createTopics(this, stage, key);
    const eventLayer = createEventLayer(this, stage);
    const context: StageContext = { stage, code, key, eventLayer, data: { tables, queues, topics } };

    const workers = createWorkers(this, context);
    const jwtSecret = createJwtSecret(this, stage, key);
    grantSecretRead("jwtSecret", jwtSecret, workers);
    const api = createApi(this, context, workers["auth-authorizer"]);
    protectSecrets(context, { ...api.functions, ...workers });
    const apiUrl = baseUrl(api.restApi, stage);
    const signatureSecret = createSignatureSecret(this, stage, key);
    const signers = grantSecretRead("signatureSecret", signatureSecret, { ...api.functions, ...workers });
    // Where receivers find the public keys.
    for (const { lambda } of signers) lambda.addEnvironment("API_ADDRESS", apiUrl);
    if (stage.console) {
      const address = createConsole(this, { stage, console: stage.console, apiUrl, page, key });
      // Where a person confirms the sign-in of a machine.
      api.functions.requestSignIn?.lambda.addEnvironment("CONSOLE_ADDRESS", address);
    }
    deployGradually(this, workers, { stage, isUrgent });

    const monitored = { stage, api: api.restApi, functions: { ...api.functions, ...workers }, queues, tables };
    const alarms = stage.alarms === false ? undefined : createAlarms(this, monitored);
    const dashboard = createDashboard(this, monitored, alarms?.all);

    addOutputs(this, {
      ApiUrl: apiUrl,
      EventsQueueUrl: queues.events.queue.queueUrl,
      JwtSecretArn: jwtSecret.secretArn,
      SignatureSecretArn: signatureSecret.secretArn,
      ...(alarms && { AlarmTopicArn: alarms.topic.topicArn }),
      NotificationsTopicArn: topics.notifications.topic.topicArn,
      DashboardUrl: dashboardUrl(dashboard),
    });
    for (const [name, table] of Object.entries(tables)) {
      addOutputs(this, { [`${constructId(name)}TableName`]: table.tableName });
    }
    suppressFindings(this);
  }
}

function addOutputs(stack: Stack, outputs: Record<string, string>): void {
  for (const [id, value] of Object.entries(outputs)) new CfnOutput(stack, id, { value });
}
