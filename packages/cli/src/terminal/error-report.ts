import type { CommanderError } from "commander";
import { ApiError, type ErrorCode, type ErrorDetail, NetworkError } from "../../../client/src/errors.ts";
import { isTemporary } from "../commands/api.ts";
import { networkAdvice } from "../commands/proxy.ts";
import { CommandError, type ExitCode, exitCodes, usageError } from "./exit-codes.ts";
import { jsonText, note, printable, styled } from "./terminal.ts";

/** What is printed about an error. */
interface Report {
  exitCode: ExitCode;
  code: string;
  message: string;
  /** Absent for an error that no response of the service has caused. */
  requestId?: string | undefined;
  /** The invalid fields of a request. */
  details?: ErrorDetail[];
  /** What to do. */
  advice?: string | undefined;
}

/**
 * Prints an error to stderr: the message, the code and the request id, and what to do.
 * @param options `json` prints one line of JSON, with the shape of the API's errors
 * @returns the exit code
 * @throws the error itself when it is a bug in `svc`, so that its stack is shown
 */
export function reportError(error: unknown, { json = false }: { json?: boolean } = {}): ExitCode {
  const report = reportOf(error);
  note(json ? jsonOf(report) : textOf(report));
  return report.exitCode;
}

/** Prints an error in the command line, which commander has found, as one line of JSON. @returns the exit code */
export function reportUsageError({ code, message }: CommanderError): ExitCode {
  // A group of commands was called without one of them: its help was to be printed instead of a message.
  const isHelp = code === "commander.help";
  const text = isHelp ? "A command is missing. Add --help to list the commands." : message.replace(/^error: /, "");
  return reportError(usageError(text.replaceAll("\n", " ")), { json: true });
}

function reportOf(error: unknown): Report {
  if (error instanceof CommandError) {
    const { exitCode, message, advice } = error;
    return { exitCode, code: codeByExitCode[exitCode], message, advice };
  }
  if (error instanceof ApiError) {
    const { code, requestId, details, message } = error;
    return { exitCode: exitCodeOf(error), code, message, requestId, details, advice: adviceFor(code) };
  }
  if (error instanceof NetworkError) {
    const advice = networkAdvice(error);
    return { exitCode: exitCodes.unavailable, code: "service_unreachable", message: error.message, advice };
  }
  throw error;
}

/** The codes of errors that `svc` has found itself. They are API, like the codes of the service. */
const codeByExitCode: Record<ExitCode, string> = {
  [exitCodes.ok]: "ok",
  [exitCodes.failed]: "failed",
  [exitCodes.usage]: "usage_error",
  [exitCodes.signedOut]: "not_signed_in",
  [exitCodes.notFound]: "not_found",
  [exitCodes.unavailable]: "service_unreachable",
  [exitCodes.timeout]: "timed_out",
};

function textOf({ code, message, requestId, details, advice }: Report): string {
  const isOfApi = details !== undefined;
  const source = [code, ...(requestId === undefined ? [] : [`request ${requestId}`])].join(", ");
  // The message contains a single detail already.
  const fields = details && details.length > 1 ? details : [];
  const text = isOfApi
    ? [`${printable(message)} (${source})`, ...fields.map(({ path, message }) => printable(`  ${path} ${message}`))]
    : [message];
  const lines = [styled("red", text.join("\n"), process.stderr)];
  return [...lines, ...(advice === undefined ? [] : [`→ ${advice}`])].join("\n");
}

/** The advice is part of the message where it names what to choose from. The API's own messages stay as they are. */
function jsonOf({ code, message, requestId, details, advice }: Report): string {
  const isOfApi = details !== undefined;
  const error = {
    code,
    message: isOfApi || advice === undefined ? message : `${message} ${advice}`,
    request_id: requestId ?? null,
    ...(isOfApi && details.length > 0 && { details }),
  };
  return jsonText({ error });
}

function exitCodeOf(error: ApiError): ExitCode {
  if (error.status === 401) return exitCodes.signedOut;
  if (error.status === 404) return exitCodes.notFound;
  // A wrong argument, which only the service could recognize.
  if (error.code === "validation_error") return exitCodes.usage;
  return isTemporary(error) ? exitCodes.unavailable : exitCodes.failed;
}

/** Undefined for a code that a newer version of the API has added. */
function adviceFor(code: string): string | undefined {
  const advice = Object.hasOwn(adviceByCode, code) ? adviceByCode[code as ErrorCode] : undefined;
  // svc login would change nothing: the variable takes precedence.
  return process.env.SVC_API_KEY?.trim()
    ? advice?.replace(/Sign in( again[^:]*)?: svc login/, "Set SVC_API_KEY to another credential")
    : advice;
}

/** `svc` itself never causes the errors without advice. */
const adviceByCode: Record<ErrorCode, string | undefined> = {
  unauthorized: "Sign in: svc login",
  invalid_token: "Sign in again: svc login",
  token_expired: "A JWT is valid for at most an hour. Sign in again, preferably with an API key: svc login",
  invalid_api_key: "The key was deleted or rolled, or belongs to another service. Sign in again: svc login",
  workflow_not_trusted:
    "An admin of the project adds the repository with its numeric id: svc workflows trust. List what is trusted: svc workflows list",
  api_key_expired: "Use another key, or create one: svc keys create",
  insufficient_permission:
    "Show what the credential may do: svc whoami. Get one that may do more: svc login, or svc keys create; of a CI job: svc workflows trust. Without projects:read, pass --project <id>",
  session_required: "An API key cannot do this. Use a JWT: svc login --with-token, or SVC_API_KEY=<JWT>",
  forbidden: "This requires an admin of the project. Show your role: svc projects list",
  project_suspended: "Ask the operator of the platform why. Deliveries are held until the suspension ends",
  not_found: "List what exists: svc projects list, svc keys list, svc webhooks list, svc deliveries list",
  conflict:
    "The message says what to change first. Of a webhook: svc webhooks update <id>, with --enable, --mode live or --delivery every",
  already_created:
    "If its secret is lost, replace it: svc keys roll, svc service-accounts roll-key, svc webhooks rotate",
  idempotency_key_reused: "Pass another --idempotency-key, or repeat the first command unchanged.",
  api_key_limit_reached: "Delete a key that is no longer needed: svc keys list",
  trusted_workflow_limit_reached: "Delete a trusted workflow that is no longer needed: svc workflows list",
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
