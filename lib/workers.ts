import { CfnOutput, Duration } from "aws-cdk-lib";
import * as events from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { type EventSourceMappingOptions, RecursiveLoop } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { type WorkerId, type WorkerRow, workerRows } from "../functions/foundation/manifest/workers.ts";
import { statementForConsuming } from "./grants.ts";
import { kmsStatementsForConsuming } from "./kms-grants.ts";
import { constructId } from "./names.ts";
import { ServiceFunction, type StageContext } from "./service-function.ts";

export type Workers = Record<WorkerId, ServiceFunction>;

/** Creates one Lambda per row of functions/foundation/manifest/workers.ts, with its trigger. */
export function createWorkers(scope: Construct, context: StageContext): Workers {
  const folder = new Construct(scope, "Workers");
  return Object.fromEntries(workerRows.map((row) => [row.id, createWorker(folder, context, row)])) as Workers;
}

function createWorker(scope: Construct, context: StageContext, row: WorkerRow): ServiceFunction {
  const worker = new ServiceFunction(scope, context, {
    ...row,
    description: descriptionOf(row),
    hasAlias: context.stage.deploysGradually && row.deploysGradually === true,
    // Lambda stops a loop between a function and its queue after 16 rounds. Retries of a delivery are such a loop,
    // which the retry schedule ends. https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    ...(sendsToOwnQueue(row) && { recursiveLoop: RecursiveLoop.ALLOW }),
  });
  addTrigger(worker, row, context);
  return worker;
}

/** Concurrent batches of one event poller: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html */
const BATCHES_PER_POLLER = 10;

function addTrigger(worker: ServiceFunction, { id, trigger }: WorkerRow, { data, stage }: StageContext): void {
  switch (trigger.kind) {
    case "authorizer":
      return; // added in api.ts
    case "queue":
      worker.allow(statementForConsuming(trigger.queue, data), ...kmsStatementsForConsuming(trigger.queue, data));
      worker.entry.addEventSourceMapping("Messages", {
        eventSourceArn: data.queues[trigger.queue].queue.queueArn,
        batchSize: trigger.batchSize,
        ...scalingOf(trigger.maxConcurrency, stage.eventPollers),
        reportBatchItemFailures: true,
      });
      return;
    case "everyMinutes": {
      const period = Duration.minutes(trigger.minutes);
      new events.Rule(worker, "Schedule", {
        schedule: events.Schedule.rate(period),
        // A missed run is not retried: the next one does its work.
        targets: [new LambdaFunction(worker.entry, { maxEventAge: period, retryAttempts: 0 })],
      });
      worker.lambda.configureAsyncInvoke({ maxEventAge: period, retryAttempts: 0 });
      return;
    }
    case "invoke":
      new CfnOutput(worker.lambda.stack, `${constructId(id)}FunctionName`, { value: worker.lambda.functionName });
      return;
  }
}

/** Lambda accepts one of both limits. */
function scalingOf(maxConcurrency: number, minimumPollers: number | undefined): Partial<EventSourceMappingOptions> {
  if (minimumPollers === undefined) return { maxConcurrency };
  const maximumPollers = Math.max(minimumPollers, maxConcurrency / BATCHES_PER_POLLER);
  return { provisionedPollerConfig: { minimumPollers, maximumPollers } };
}

function sendsToOwnQueue({ trigger, uses }: WorkerRow): boolean {
  return trigger.kind === "queue" && (uses.sendsTo?.includes(trigger.queue) ?? false);
}

function descriptionOf({ trigger }: WorkerRow): string {
  switch (trigger.kind) {
    case "authorizer":
      return "Authenticates every request of the API";
    case "queue":
      return `Consumes the queue ${trigger.queue}`;
    case "everyMinutes":
      return `Runs every ${trigger.minutes} min`;
    case "invoke":
      return "Invoked by other services of the platform";
  }
}
