import { styleText } from "node:util";
import { ApiError } from "../../packages/client/src/errors.ts";
import { StartError } from "../command/start-error.ts";

/* What the demo and the smoke test share, beside the receiver. */

export function style(name: "bold" | "dim" | "green" | "red", text: string): string {
  return styleText(name, text, { stream: process.stdout });
}

/** Returns the error with which the API rejects a request. @throws StartError when it accepts the request */
export async function rejectionOf(request: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await request.then(
    () => new StartError("The API accepted a request that it must reject."),
    (rejection: unknown) => rejection,
  );
  if (error instanceof ApiError) return error;
  throw error;
}
