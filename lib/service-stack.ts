import { CfnOutput, Stack } from "aws-cdk-lib";
import type { Code } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { alarmOnDeadLetters } from "./alarms.ts";
import { baseUrl, createApi } from "./api.ts";
import { createJwtSecret, letRead } from "./jwt-secret.ts";
import { constructId } from "./names.ts";
import { createQueues } from "./queues.ts";
import type { Surroundings } from "./service-function.ts";
import type { Stage } from "./stages.ts";
import { createTables } from "./tables.ts";
import { createWorkers } from "./workers.ts";

export interface ServiceStackProps {
  stage: Stage;
  /** The bundle of a function, by its path below `functions/`. */
  code: (file: string) => Code;
}

/** The whole service in one stage. Its parts follow from the rows in functions/{endpoints,workers,tables,queues}.ts. */
export class ServiceStack extends Stack {
  constructor(scope: Construct, id: string, { stage, code }: ServiceStackProps) {
    super(scope, id, { terminationProtection: stage.keepsData });

    const tables = createTables(this, stage);
    const queues = createQueues(this, stage);
    const surroundings: Surroundings = { stage, code, data: { tables, queues } };

    const workers = createWorkers(this, surroundings);
    const jwtSecret = createJwtSecret(this, stage);
    letRead(jwtSecret, workers.authorizer);

    const api = createApi(this, surroundings, workers.authorizer);
    alarmOnDeadLetters(this, queues);

    this.output("ApiUrl", baseUrl(api));
    this.output("EventsQueueUrl", queues.events.queue.queueUrl);
    this.output("JwtSecretArn", jwtSecret.secretArn);
    for (const [key, table] of Object.entries(tables)) this.output(`${constructId(key)}TableName`, table.tableName);
  }

  private output(id: string, value: string): void {
    new CfnOutput(this, id, { value });
  }
}
