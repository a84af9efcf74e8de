import { ApiError } from "../../client/src/errors.ts";
import { isTemporary } from "./api.ts";
import { CommandError, type ExitCode, exitCodes } from "./exit-codes.ts";
import { note, paint, printable } from "./terminal.ts";

/**
 * Tells what went wrong, on stderr: a sentence, the code and the id of the request, and what to do about it.
 * @returns what to end with
 * @throws what is a fault of ours, with its stack
 */
export function reportError(error: unknown): ExitCode {
  if (error instanceof CommandError) return say(error.message, error.advice, error.exitCode);
  if (error instanceof ApiError) {
    const { code, requestId, details, message } = error;
    const about = [code, ...(requestId === undefined ? [] : [`request ${requestId}`])].join(", ");
    const fields = details.length > 1 ? details.map(({ path, message }) => `\n  ${path} ${message}`).join("") : "";
    return say(`${printable(message)} (${about})${printable(fields)}`, adviceFor(code), exitCodeOf(error));
  }
  if (isTemporary(error))
    return say((error as Error).message, "Check the base URL and your network.", exitCodes.unavailable);
  throw error;
}

function say(message: string, advice: string | undefined, exitCode: ExitCode): ExitCode {
  note(paint("red", message, process.stderr));
  if (advice !== undefined) note(`→ ${advice}`);
  return exitCode;
}

function exitCodeOf(error: ApiError): ExitCode {
  if (error.status === 401) return exitCodes.signedOut;
  if (error.status === 404) return exitCodes.notFound;
  return isTemporary(error) ? exitCodes.unavailable : exitCodes.failed;
}

const adviceFor = (code: string): string | undefined => advices[code];

const advices: Record<string, string> = {
  unauthorized: "Sign in: svc login",
  invalid_token: "Sign in again: svc login",
  token_expired: "A JWT lives for an hour. Sign in again, or with an API key: svc login",
  invalid_api_key: "The key was deleted, or is not of this service. Sign in again: svc login",
  session_required: "An API key cannot do this. Use a JWT: svc login, or SVC_API_KEY=<JWT>",
  forbidden: "It takes an admin of the project; svc projects list shows your role",
  not_found: "What is there: svc projects list, svc webhooks list, svc deliveries list",
  conflict: "The state of the webhook: svc webhooks show <id>. To enable it: svc webhooks update <id> --enable",
  api_key_limit_reached: "Delete one that is not needed: svc keys list",
  webhook_limit_reached: "Delete one that is not needed: svc webhooks list",
  validation_error: "How it is used: --help",
  rate_limited: "Wait a little and try again",
  internal_error: "Try again; if it stays, report the request id",
  service_unavailable: "Try again in a little while",
};
