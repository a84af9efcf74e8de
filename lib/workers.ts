import { CfnOutput, Duration } from "aws-cdk-lib";
import * as events from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { RecursiveLoop } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { statementForReading } from "./grants.ts";
import { keyStatementsForReading } from "./key-grants.ts";
import { constructId } from "./names.ts";
import { ServiceFunction, type StageContext } from "./service-function.ts";

export type Workers = Record<(typeof workers)[number]["file"], ServiceFunction>;

/** A mistake in one of these is everybody's at once: no request gets in, or no webhook gets out. */
const GRADUAL = ["auth/authorizer", "attempts/send"];

/** One Lambda per row of functions/manifest/workers.ts, started by what its row says. */
export function createWorkers(scope: Construct, surroundings: StageContext): Workers {
  const folder = new Construct(scope, "Workers");
  return Object.fromEntries(workers.map((row) => [row.file, createWorker(folder, surroundings, row)])) as Workers;
}

function createWorker(scope: Construct, surroundings: StageContext, row: WorkerRow): ServiceFunction {
  const worker = new ServiceFunction(scope, surroundings, {
    ...row,
    description: descriptionOf(row),
    hasAlias: surroundings.stage.deploysGradually && GRADUAL.includes(row.file),
    // Lambda breaks up what looks like an endless loop after 16 rounds. A delivery that is retried goes round on purpose,
    // and our own count of attempts ends it. https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    ...(feedsItself(row) && { recursiveLoop: RecursiveLoop.ALLOW }),
  });
  start(worker, row, surroundings);
  return worker;
}

function start(worker: ServiceFunction, { file, trigger }: WorkerRow, { data }: StageContext): void {
  switch (trigger.kind) {
    case "authorizer":
      return; // lib/api.ts
    case "queue":
      worker.lambda.addToRolePolicy(statementForReading(trigger.queue, data));
      for (const statement of keyStatementsForReading(trigger.queue, data)) worker.lambda.addToRolePolicy(statement);
      worker.entry.addEventSourceMapping("Messages", {
        eventSourceArn: data.queues[trigger.queue].queue.queueArn,
        batchSize: trigger.batchSize,
        maxConcurrency: trigger.maxConcurrency,
        reportBatchItemFailures: true,
      });
      return;
    case "everyMinutes": {
      const period = Duration.minutes(trigger.minutes);
      new events.Rule(worker, "Schedule", {
        schedule: events.Schedule.rate(period),
        // A run that was missed is not made up for: the next one does its work.
        targets: [new LambdaFunction(worker.entry, { maxEventAge: period, retryAttempts: 0 })],
      });
      worker.lambda.configureAsyncInvoke({ maxEventAge: period, retryAttempts: 0 });
      return;
    }
    case "invoke":
      new CfnOutput(worker.lambda.stack, `${constructId(file)}FunctionName`, { value: worker.lambda.functionName });
      return;
  }
}

function feedsItself({ trigger, uses }: WorkerRow): boolean {
  return trigger.kind === "queue" && (uses.sendsTo?.includes(trigger.queue) ?? false);
}

function descriptionOf({ trigger }: WorkerRow): string {
  switch (trigger.kind) {
    case "authorizer":
      return "Authorizes every request of the API";
    case "queue":
      return `Consumes the queue ${trigger.queue}`;
    case "everyMinutes":
      return `Runs every ${trigger.minutes} min`;
    case "invoke":
      return "For the rest of the platform to invoke";
  }
}
