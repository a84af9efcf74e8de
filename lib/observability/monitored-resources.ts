import type * as apigateway from "aws-cdk-lib/aws-apigateway";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import type { Queues } from "../queues.ts";
import type { ServiceFunction } from "../service-function.ts";
import type { Stage } from "../stage.ts";
import type { Tables } from "../tables.ts";

/** The resources of one stage whose metrics the alarms and the dashboard read. */
export interface MonitoredResources {
  stage: Pick<Stage, "name" | "keepsData" | "alarmEmail">;
  api: apigateway.RestApi;
  /** Every endpoint and worker, by its row id. */
  functions: Record<string, Pick<ServiceFunction, "lambda">>;
  queues: Queues;
  tables: Tables;
}

/**
 * Returns a function, not its alias, so that its metrics count all versions.
 * @param id row id
 * @throws Error at synthesis when the id is not one of the monitored functions
 */
export function functionFor(functions: MonitoredResources["functions"], id: string): lambda.Function {
  const found = functions[id];
  if (found === undefined) throw new Error(`No monitored function has the id ${id}.`);
  return found.lambda;
}
