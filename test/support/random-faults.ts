import { AsyncLocalStorage } from "node:async_hooks";
import {
  InternalServerError,
  ProvisionedThroughputExceededException,
  ThrottlingException,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import { SQSServiceException } from "@aws-sdk/client-sqs";
import { dynamo, sqs } from "../../functions/foundation/platform/aws.ts";

/*
 * Random faults of AWS: calls of the functions are throttled, time out, lose their connection or succeed in part. A
 * call that times out may have taken effect or not.
 */

type Output = Record<string, unknown>;
interface Call {
  command: string;
  input: Record<string, unknown>;
}
type Send = (input?: Record<string, unknown>) => Promise<Output>;
type Fault = (call: Call, send: Send) => Promise<Output>;

type Handler = (args: { input: unknown }) => Promise<{ output: unknown; response: unknown }>;
interface Stack {
  add(
    middleware: (next: Handler, context: { commandName?: string }) => Handler,
    options: { step: "initialize" | "finalizeRequest"; priority: "high" | "low"; name: string },
  ): void;
  remove(name: string): boolean;
}

export interface RandomFaults {
  /** The number of injected faults, by kind. */
  counts: Record<string, number>;
  stop(): void;
}

const exempt = new AsyncLocalStorage<boolean>();

/** Runs calls without faults. For the calls that the test itself makes. */
export const withoutFaults = <T>(run: () => Promise<T>): Promise<T> => exempt.run(true, run);

/** Mulberry32: a reproducible sequence of numbers from 0 to 1. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const $metadata = {};
const failWith =
  (make: () => Error): Fault =>
  async () => {
    throw make();
  };
const timedOut = () => Object.assign(new Error("no response in time"), { name: "TimeoutError", $metadata });
const reset = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET", $metadata });
const responseLost: Fault = async (_, send) => {
  await send();
  throw timedOut();
};

const network = { "timeout before": failWith(timedOut), "timeout after": responseLost, reset: failWith(reset) };
const dynamoFaults: Record<string, Fault> = {
  ...network,
  throttled: failWith(() => new ThrottlingException({ message: "slow down", $metadata })),
  "throughput exceeded": failWith(() => new ProvisionedThroughputExceededException({ message: "too hot", $metadata })),
  "500": failWith(() => new InternalServerError({ message: "oops", $metadata })),
};
const sqsFaults: Record<string, Fault> = {
  ...network,
  throttled: failWith(() => sqsError("RequestThrottled", "client")),
  "503": failWith(() => sqsError("ServiceUnavailable", "server")),
};
const sqsError = (name: string, $fault: "client" | "server") =>
  Object.assign(new SQSServiceException({ name, $fault, message: "not now", $metadata }), {
    $retryable: { throttling: name === "RequestThrottled" },
  });

/** Faults of one operation only. */
const special: Record<string, Record<string, Fault>> = {
  TransactWriteItemsCommand: {
    "transaction conflict": failWith(() => {
      const CancellationReasons = [{ Code: "TransactionConflict" }, { Code: "None" }];
      return new TransactionCanceledException({ message: "conflict", CancellationReasons, $metadata });
    }),
  },
};

/**
 * Partial failures: the response reports a part of the batch as not processed. Injected before the SDK processes the
 * call.
 */
const partial: Record<string, Fault> = {
  BatchGetItemCommand: async ({ input }, send) => {
    const tables = Object.entries(input.RequestItems as Record<string, { Keys: unknown[] }>);
    const [[table, { Keys, ...rest }] = ["", { Keys: [] }], ...others] = tables;
    if (others.length > 0) {
      const output = await send({ RequestItems: Object.fromEntries(others) });
      return { ...output, UnprocessedKeys: Object.fromEntries(tables.slice(0, 1)) };
    }
    const half = Math.floor(Keys.length / 2);
    const left = { [table]: { ...rest, Keys: Keys.slice(half) } };
    if (half === 0) return { Responses: {}, UnprocessedKeys: left };
    const output = await send({ RequestItems: { [table]: { ...rest, Keys: Keys.slice(0, half) } } });
    return { ...output, UnprocessedKeys: left };
  },
  SendMessageBatchCommand: (call, send) => everyOther(call, send),
  DeleteMessageBatchCommand: (call, send) => everyOther(call, send),
};

async function everyOther({ input }: Call, send: Send): Promise<Output> {
  const entries = input.Entries as { Id: string }[];
  const done = entries.filter((_, index) => index % 2 === 1);
  const Failed = entries
    .filter((_, index) => index % 2 === 0)
    .map(({ Id }) => ({ Id, Code: "InternalError", SenderFault: false }));
  const output = done.length > 0 ? await send({ ...input, Entries: done }) : {};
  return { ...output, Failed };
}

/**
 * Injects faults into all calls to DynamoDB and SQS from now on.
 * @param seed of the random numbers
 * @param share of the calls that fail, from 0 to 1
 * @param reach `requests`: single requests, which the SDK retries; `calls`: whole calls after all retries, and partial
 * failures
 */
export function injectFaults(seed: number, share: number, reach: "requests" | "calls"): RandomFaults {
  const random = randomFrom(seed);
  const counts: Record<string, number> = {};
  const inject = (stack: Stack, general: Record<string, Fault>) => {
    const middleware = (next: Handler, { commandName = "" }: { commandName?: string }): Handler => {
      const operationFaults = { ...special[commandName], ...(reach === "calls" && partialOf(commandName)) };
      return async (args) => {
        if (exempt.getStore() || random() >= share) return next(args);
        // Half of the faults are specific to the operation, if it has any.
        const isSpecial = Object.keys(operationFaults).length > 0 && random() < 0.5;
        const kinds = Object.entries(isSpecial ? operationFaults : general);
        const [kind = "", fault = responseLost] = kinds[Math.floor(random() * kinds.length)] ?? [];
        counts[kind] = (counts[kind] ?? 0) + 1;
        const call = { command: commandName, input: args.input as Record<string, unknown> };
        let response: unknown = {};
        const send = async (input?: Record<string, unknown>) => {
          const result = await next(input ? { ...args, input } : args);
          response = result.response;
          return result.output as Output;
        };
        return { output: await fault(call, send), response };
      };
    };
    const name = `faults-${seed}-${reach}`;
    if (reach === "calls") stack.add(middleware, { step: "initialize", priority: "high", name });
    else stack.add(middleware, { step: "finalizeRequest", priority: "low", name });
    return () => stack.remove(name);
  };
  const removers = [
    inject(dynamo().middlewareStack as unknown as Stack, dynamoFaults),
    inject(sqs().middlewareStack as unknown as Stack, sqsFaults),
  ];
  return { counts, stop: () => removers.forEach((remove) => void remove()) };
}

const partialOf = (command: string): Record<string, Fault> => {
  const fault = partial[command];
  return fault ? { [`part of ${command.replace("Command", "")}`]: fault } : {};
};
