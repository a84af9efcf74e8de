import { randomUUID } from "node:crypto";
import type { Context } from "aws-lambda";
import { functionRow } from "../../functions/foundation/manifest/function-rows.ts";
import { withGrantsOf } from "./permissions.ts";

/** Loads the handler of a row. @param id of the row */
export type LoadHandler = (id: string) => Promise<LambdaHandler>;
export type LambdaHandler = (event: unknown, context: Context) => Promise<unknown>;

/** Loads handlers from their sources in `functions/`. */
export const fromSources: LoadHandler = async (id) => {
  const { file } = functionRow(id);
  const module: { handler: LambdaHandler } = await import(new URL(`../../functions/${file}.ts`, import.meta.url).href);
  return module.handler;
};

/** A handler did not finish within the timeout of its row. */
export class LambdaTimeout extends Error {
  override readonly name = "LambdaTimeout";
}

/**
 * Invokes a handler as the Lambda runtime does, with its timeout and its grants. A handler that is late is not stopped.
 * @param functionName the id of its row
 * @throws LambdaTimeout, AccessDenied, EnvNotGranted, or the error of the handler
 */
export async function invoke(
  handler: LambdaHandler,
  event: unknown,
  { functionName, timeoutSeconds }: { functionName: string; timeoutSeconds: number },
): Promise<unknown> {
  const endsAt = Date.now() + timeoutSeconds * 1000;
  const context = {
    functionName,
    awsRequestId: randomUUID(),
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, endsAt - Date.now()),
  } as Context;
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const onTimeout = () => reject(new LambdaTimeout(`${functionName} took longer than ${timeoutSeconds} s`));
    timer = setTimeout(onTimeout, timeoutSeconds * 1000);
  });
  try {
    return await Promise.race([withGrantsOf(functionName, () => handler(event, context)), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
