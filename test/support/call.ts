import { fromSources, invoke } from "../../bin/emulator/lambda.ts";

/**
 * Invokes a function without a route, with the grants of its row, as the rest of the platform does. With 10 seconds left, some
 * functions begin nothing.
 */
export async function call<Result>(id: string, input: unknown): Promise<Result> {
  return (await invoke(await fromSources(id), input, { functionName: id, timeoutSeconds: 60 })) as Result;
}
