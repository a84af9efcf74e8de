import type { Grants } from "./grants-schema.ts";
import type { QueueKey } from "./queues.ts";

/** The Lambdas without a route, one row each: what starts them and what they may use. Data only. */
export interface WorkerRow {
  file: string;
  trigger: Trigger;
  timeoutSeconds: number;
  memoryMb: number;
  uses: Grants;
}

/**
 * - `authorizer`: API Gateway asks it who is calling, on every request.
 * - `queue`: an event source mapping that reports partial batch failures. `maxConcurrency` bounds the parallel batches.
 * - `everyMinutes`: a schedule.
 * - `invoke`: the rest of the platform calls it under IAM.
 */
export type Trigger =
  | { kind: "authorizer" }
  | { kind: "queue"; queue: QueueKey; batchSize: number; maxConcurrency: number }
  | { kind: "everyMinutes"; minutes: number }
  | { kind: "invoke" };

export const workers = [
  {
    file: "auth/authorizer",
    trigger: { kind: "authorizer" },
    timeoutSeconds: 10,
    memoryMb: 512,
    uses: { tables: { apiKeys: ["GetItem", "UpdateItem"] }, reads: ["jwtSecret"] },
  },
  {
    file: "deliveries/fan-out",
    trigger: { kind: "queue", queue: "events", batchSize: 10, maxConcurrency: 50 },
    timeoutSeconds: 30,
    memoryMb: 512,
    uses: { tables: { webhooks: ["Query"], deliveries: ["PutItem"] }, sendsTo: ["deliveries"], rejectsTo: ["events"] },
  },
  {
    file: "attempts/send",
    trigger: { kind: "queue", queue: "deliveries", batchSize: 10, maxConcurrency: 200 },
    timeoutSeconds: 30,
    // Most of an attempt is waiting for the receiver, which costs by the memory that waits. It uses less than two thirds.
    memoryMb: 256,
    uses: {
      tables: {
        deliveries: ["BatchGetItem", "UpdateItem"],
        webhooks: ["BatchGetItem", "UpdateItem"],
        webhookSecrets: ["BatchGetItem"],
      },
      sendsTo: ["deliveries"],
    },
  },
  {
    file: "deliveries/sweep",
    trigger: { kind: "everyMinutes", minutes: 1 },
    timeoutSeconds: 55,
    memoryMb: 512,
    uses: { tables: { deliveries: ["UpdateItem"] }, queries: ["deliveries/due"], sendsTo: ["deliveries"] },
  },
  {
    file: "projects/upsert-member",
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 256,
    uses: { tables: { projects: ["UpdateItem"] } },
  },
  {
    file: "api-keys/provision",
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 256,
    uses: { tables: { apiKeys: ["PutItem"], userApiKeys: ["PutItem", "UpdateItem"] } },
  },
] as const satisfies readonly WorkerRow[];
