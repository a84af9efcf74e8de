import { styleText } from "node:util";
import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { ApiError } from "../../packages/client/src/errors.ts";
import { StartError } from "../command/start-error.ts";

/* How the demos show their steps. */

export function heading(text: string): void {
  console.log(`\n${style("bold", text)}`);
}

let steps = 0;

export function step(title: string, request: string): void {
  steps += 1;
  console.log(`\n${style("bold", `${steps}  ${title}`)}  ${style("dim", request)}`);
}

export function show(text: string): void {
  console.log(`   ${printableText(text)}`);
}

/** Shows whether something is as the demo promises. Otherwise the exit code is 1. */
export function verdict(isRight: boolean, right: string, wrong: string): string {
  if (!isRight) process.exitCode = 1;
  return isRight ? style("green", `✔ ${right}`) : style("red", `✘ ${wrong}`);
}

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
