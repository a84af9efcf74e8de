import { dynamo, sns, sqs } from "../../functions/foundation/platform/aws.ts";

/** A call from the functions to AWS, before the SDK processes it. */
export interface AwsCall {
  /** The name of the SDK command, such as `GetItemCommand`. */
  command: string;
  input: Record<string, unknown>;
}

type Output = Record<string, unknown>;
/**
 * Runs between the functions and the SDK: sends the call, changes its input, throws, or returns an output of its own.
 */
type Interceptor = (call: AwsCall, send: (input?: Record<string, unknown>) => Promise<Output>) => Promise<Output>;

type Handler = (args: { input: unknown }) => Promise<{ output: unknown; response: unknown }>;
interface Stack {
  add(
    middleware: (next: Handler, context: { commandName?: string }) => Handler,
    options: { step: "initialize" | "finalizeRequest"; priority: "high" | "low"; name: string },
  ): void;
  remove(name: string): boolean;
}

const removers: (() => void)[] = [];

// What a test installs ends with it; what `beforeAll` installs stays. A benchmark has no tests.
if ("afterEach" in globalThis) {
  let installedBefore = 0;
  beforeEach(() => {
    installedBefore = removers.length;
  });
  afterEach(() => {
    for (const remove of removers.splice(installedBefore)) remove();
  });
}

function intercept(stack: Stack, interceptor: Interceptor): void {
  const name = `test-${removers.length}-${Math.random()}`;
  stack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const call = { command: commandName, input: args.input as Record<string, unknown> };
        const send = async (input = call.input) => (await next({ ...args, input })).output as Output;
        return { output: await interceptor(call, send), response: {} };
      },
    { step: "initialize", priority: "high", name },
  );
  removers.push(() => stack.remove(name));
}

export const interceptDynamo = (interceptor: Interceptor): void =>
  intercept(dynamo().middlewareStack as unknown as Stack, interceptor);
export const interceptSqs = (interceptor: Interceptor): void =>
  intercept(sqs().middlewareStack as unknown as Stack, interceptor);
export const interceptSns = (interceptor: Interceptor): void =>
  intercept(sns().middlewareStack as unknown as Stack, interceptor);

/**
 * Loses the response to the next request of a command to DynamoDB: the write takes effect, and the SDK, which cannot
 * know this, sends the same request again.
 * @param command the name of the SDK command, such as `UpdateItemCommand`
 * @param isMeant the call, if not any with this command
 * @param meanwhile runs after the write has taken effect, before it is sent again
 * @returns the number of requests of this command that were sent from now on
 */
export function loseNextResponse(
  command: string,
  isMeant: IsMeant = () => true,
  meanwhile: () => Promise<unknown> = async () => {},
): { requests: number } {
  const sent = { requests: 0 };
  const stack = dynamo().middlewareStack as unknown as Stack;
  const name = `lost-response-${removers.length}-${Math.random()}`;
  stack.add(
    (next, { commandName }) =>
      async (args) => {
        const call = { command: commandName ?? "", input: args.input as Record<string, unknown> };
        if (commandName !== command || !isMeant(call)) return next(args);
        sent.requests += 1;
        if (sent.requests > 1) return next(args);
        await Promise.allSettled([next(args)]);
        await meanwhile();
        throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET", $metadata: {} });
      },
    // The lowest priority of this step runs for each request, after the middleware that retries.
    { step: "finalizeRequest", priority: "low", name },
  );
  removers.push(() => stack.remove(name));
  return sent;
}

/** moto has no `ClientRequestToken`: it takes a transaction that is sent again for another one. */
export const repeatable = process.env.TEST_ENGINES ? /^(Put|Update|Delete)/ : /^(Put|Update|Delete|TransactWrite)/;

/**
 * Loses the response to the first request of every write to DynamoDB, so that the SDK sends it again. Only a wake-up may then differ:
 * it counts once more, which costs a visit.
 * @returns the commands whose response was lost
 */
export function loseEveryResponse(): Set<string> {
  const lost = new Set<string>();
  const sent = new WeakSet<object>();
  const stack = dynamo().middlewareStack as unknown as Stack;
  stack.add(
    (next, context) => async (args) => {
      const call = { command: context.commandName ?? "", input: args.input as Record<string, unknown> };
      const isWrite = repeatable.test(call.command) && !isCall(call, "UpdateItem", "backlog");
      if (!isWrite || sent.has(context)) return next(args);
      sent.add(context);
      lost.add(call.command);
      await Promise.allSettled([next(args)]);
      throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET", $metadata: {} });
    },
    { step: "finalizeRequest", priority: "low", name: "lose-every-response" },
  );
  removers.push(() => stack.remove("lose-every-response"));
  return lost;
}

/** Returns whether an AWS call is one that the test means. */
type IsMeant = (call: AwsCall) => boolean;

/** Makes the SDK repeat calls to DynamoDB that took effect, as it does when the answer is lost. */
export const repeatDynamo = (isRepeated: IsMeant): void =>
  interceptDynamo(async (call, send) => {
    if (isRepeated(call)) await send();
    return send();
  });

/** Makes calls to DynamoDB fail before they take effect. */
export const failDynamo = (isFailing: IsMeant): void =>
  interceptDynamo(async (call, send) => {
    if (isFailing(call)) throw Object.assign(new Error("slow down"), { name: "ThrottlingException" });
    return send();
  });

/** Returns whether a call has this command and a table whose name ends with `-<table>`. */
export const isCall = ({ command, input }: AwsCall, name: string, table: string): boolean =>
  command === `${name}Command` && String(input.TableName).endsWith(`-${table}`);

/** Returns whether a call writes a held delivery. */
export const isHold = ({ command, input }: AwsCall): boolean =>
  /^(Put|Update)ItemCommand$/.test(command) && JSON.stringify(input).includes('"held"');

/** Runs `act` once, before the first write of a held delivery. */
export const beforeHold = (act: () => Promise<unknown>): void => before(isHold, act);

/** Runs `act` once, before the next transaction: another request that is faster. */
export const beforeTransaction = (act: () => Promise<unknown>): void =>
  before(({ command }) => command === "TransactWriteItemsCommand", act);

function before(isMeant: IsMeant, act: () => Promise<unknown>): void {
  let hasActed = false;
  interceptDynamo(async (call, send) => {
    if (isMeant(call) && !hasActed) {
      hasActed = true;
      await act();
    }
    return send();
  });
}

/** Removes all interceptors, before the end of the test. */
export function restoreAws(): void {
  for (const remove of removers.splice(0)) remove();
}

/** Records all calls to DynamoDB from now on: the command, and the read or write units it consumed. */
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

/** Records all message batches sent to SQS from now on. */
export function watchQueue(): QueueBatch[] {
  const seen: QueueBatch[] = [];
  interceptSqs(async ({ command, input }, send) => {
    if (command === "SendMessageBatchCommand") seen.push(input as unknown as QueueBatch);
    return send();
  });
  return seen;
}
