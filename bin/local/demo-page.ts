import { styleText } from "node:util";
import { printableText } from "../../packages/cli/src/terminal.ts";
import { StartError } from "./start-error.ts";

/* How the demos show their steps, and how they call the API. */

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

/** @throws StartError for an error response with another status than 401 */
// biome-ignore lint/suspicious/noExplicitAny: the response is printed, not computed with
export async function call(baseUrl: string, token: string, method: string, path: string, body?: object): Promise<any> {
  const { status, json } = await request(baseUrl, token, method, path, body);
  if (status >= 400 && status !== 401) {
    throw new StartError(`${method} ${path} was rejected with ${status}: ${json.error.message}`);
  }
  return json;
}

export async function request(
  baseUrl: string,
  token: string,
  method: string,
  path: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: as above
): Promise<{ status: number; json: any }> {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json = response.status === 204 ? undefined : JSON.parse(await response.text());
  return { status: response.status, json };
}
