import { dynamo, sqs } from "../../functions/platform/aws.ts";

/** A call that the functions make to AWS, before the SDK works on it. */
export interface AwsCall {
  /** `GetItemCommand` and so on. */
  command: string;
  input: Record<string, unknown>;
}

type Output = Record<string, unknown>;
/** Stands between the functions and the SDK: sends the call (with another input perhaps), or throws, or makes up an answer. */
type Interceptor = (call: AwsCall, send: (input?: Record<string, unknown>) => Promise<Output>) => Promise<Output>;

type Handler = (args: { input: unknown }) => Promise<{ output: unknown; response: unknown }>;
interface Stack {
  add(
    middleware: (next: Handler, context: { commandName?: string }) => Handler,
    options: { step: "initialize"; priority: "high"; name: string },
  ): void;
  remove(name: string): boolean;
}

const undo: (() => void)[] = [];

function intercept(stack: Stack, interceptor: Interceptor): void {
  const name = `test-${undo.length}-${Math.random()}`;
  stack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const call = { command: commandName, input: args.input as Record<string, unknown> };
        const send = async (input = call.input) => (await next({ ...args, input })).output as Output;
        return { output: await interceptor(call, send), response: {} };
      },
    { step: "initialize", priority: "high", name },
  );
  undo.push(() => stack.remove(name));
}

export const interceptDynamo = (interceptor: Interceptor): void =>
  intercept(dynamo().middlewareStack as unknown as Stack, interceptor);
export const interceptSqs = (interceptor: Interceptor): void =>
  intercept(sqs().middlewareStack as unknown as Stack, interceptor);

/** Takes all interceptors out again. For `afterEach`. */
export function restoreAws(): void {
  for (const remove of undo.splice(0)) remove();
}

/** Notes the calls to DynamoDB from now on: the command, and the read or write units that it took. */
export function watchDynamo(): { command: string; units: number }[] {
  const seen: { command: string; units: number }[] = [];
  interceptDynamo(async ({ command, input }, send) => {
    const output = await send({ ...input, ReturnConsumedCapacity: "TOTAL" });
    const consumed = [output.ConsumedCapacity].flat() as ({ CapacityUnits?: number } | undefined)[];
    seen.push({ command, units: consumed.reduce((sum, each) => sum + (each?.CapacityUnits ?? 0), 0) });
    return output;
  });
  return seen;
}

export interface QueueBatch {
  Entries: { Id: string; MessageBody: string; DelaySeconds: number; MessageGroupId: string }[];
}

/** Notes the batches that are put on a queue from now on. */
export function watchQueue(): QueueBatch[] {
  const seen: QueueBatch[] = [];
  interceptSqs(async ({ command, input }, send) => {
    if (command === "SendMessageBatchCommand") seen.push(input as unknown as QueueBatch);
    return send();
  });
  return seen;
}
