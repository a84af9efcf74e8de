import { ApiError, type ErrorCode } from "../../client/src/errors.ts";
import { isTemporary } from "./api.ts";
import { CommandError, type ExitCode, exitCodes } from "./exit-codes.ts";
import { note, printable, styled } from "./terminal.ts";

/**
 * Prints an error to stderr: the message, the code and the request id, and what to do.
 * @returns the exit code
 * @throws the error itself when it is a bug in `svc`, so that its stack is shown
 */
export function reportError(error: unknown): ExitCode {
  if (error instanceof CommandError) return printError(error.message, error.advice, error.exitCode);
  if (error instanceof ApiError) {
    const { code, requestId, details, message } = error;
    const source = [code, ...(requestId === undefined ? [] : [`request ${requestId}`])].join(", ");
    // The message contains a single detail already.
    const fields = details.length > 1 ? details.map(({ path, message }) => `\n  ${path} ${message}`).join("") : "";
    return printError(`${printable(message)} (${source})${printable(fields)}`, adviceFor(code), exitCodeOf(error));
  }
  if (isTemporary(error))
    return printError((error as Error).message, "Check the base URL and your network.", exitCodes.unavailable);
  throw error;
}

function printError(message: string, advice: string | undefined, exitCode: ExitCode): ExitCode {
  note(styled("red", message, process.stderr));
  if (advice !== undefined) note(`→ ${advice}`);
  return exitCode;
}

function exitCodeOf(error: ApiError): ExitCode {
  if (error.status === 401) return exitCodes.signedOut;
  if (error.status === 404) return exitCodes.notFound;
  return isTemporary(error) ? exitCodes.unavailable : exitCodes.failed;
}

/** Undefined for a code that a newer version of the API has added. */
const adviceFor = (code: string): string | undefined =>
  Object.hasOwn(adviceByCode, code) ? adviceByCode[code as ErrorCode] : undefined;

/** `svc` itself never causes the errors without advice. */
const adviceByCode: Record<ErrorCode, string | undefined> = {
  unauthorized: "Sign in: svc login",
  invalid_token: "Sign in again: svc login",
  token_expired: "A JWT is valid for at most an hour. Sign in again, preferably with an API key: svc login",
  invalid_api_key: "The key was deleted, or belongs to another service. Sign in again: svc login",
  workflow_not_trusted:
    "An admin of the project adds the repository with its numeric id: svc workflows trust. List what is trusted: svc workflows list",
  api_key_expired: "Use another key, or create one: svc keys create",
  insufficient_permission:
    "Show what the credential may do: svc whoami. Create a key with more permissions: svc keys create",
  session_required: "An API key cannot do this. Use a JWT: svc login, or SVC_API_KEY=<JWT>",
  forbidden: "This requires an admin of the project. Show your role: svc projects list",
  project_suspended: "Ask the operator of the platform why. Deliveries are held until the suspension ends",
  not_found: "List what exists: svc projects list, svc keys list, svc webhooks list, svc deliveries list",
  conflict: "Show the state of the webhook: svc webhooks show <id>. Enable it: svc webhooks update <id> --enable",
  already_created: undefined,
  idempotency_key_reused: undefined,
  api_key_limit_reached: "Delete a key that is no longer needed: svc keys list",
  trusted_workflow_limit_reached: "Delete a trust that is no longer needed: svc workflows list",
  webhook_limit_reached: "Delete a webhook that is no longer needed: svc webhooks list",
  service_account_limit_reached: "Delete a service account that is no longer needed: svc service-accounts list",
  validation_error: "Show the usage of a command: add --help",
  rate_limited: "Wait a moment and try again",
  internal_error: "Try again. If it happens again, report the request id",
  service_unavailable: "Try again in a moment",
  invalid_json: undefined,
  method_not_allowed: undefined,
  payload_too_large: undefined,
  unsupported_media_type: undefined,
};
