import { jest } from "@jest/globals";
import { reportError } from "../../../../packages/cli/src/terminal/error-report.ts";
import { CommandError, exitCodes, usageError } from "../../../../packages/cli/src/terminal/exit-codes.ts";
import { ApiError, NetworkError } from "../../../../packages/client/src/errors.ts";

/* What a failed command of `svc` prints. */

let printed: string;
beforeEach(() => {
  printed = "";
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(() => jest.restoreAllMocks());

test("not_found names the command that lists each kind of resource, and returns exit code 4", () => {
  const error = new ApiError(404, { code: "not_found", message: "No API key has this id.", request_id: "r-1" });
  expect(reportError(error)).toBe(4);
  expect(printed).toContain("No API key has this id. (not_found, request r-1)");
  for (const kind of ["projects", "keys", "webhooks", "deliveries"]) expect(printed).toContain(`svc ${kind} list`);
});

test.each([
  [" ", "Sign in again: svc login"],
  ["svc_x", "Set SVC_API_KEY to another credential"],
])("with SVC_API_KEY=%j, a rejected credential leads to the advice %j", (key, advice) => {
  const before = process.env.SVC_API_KEY;
  process.env.SVC_API_KEY = key;
  reportError(new ApiError(401, { code: "invalid_api_key", message: "No.", request_id: "r-3" }));
  if (before === undefined) delete process.env.SVC_API_KEY;
  else process.env.SVC_API_KEY = before;
  expect(printed).toContain(advice);
});

test.each([
  ["session_required", 403, 1, "An API key cannot do this. Use a JWT: svc login --with-token"],
  ["forbidden", 403, 1, "This requires an admin of the project."],
  ["conflict", 409, 1, "svc webhooks update <id>, with --enable, --mode live or --delivery every"],
  ["rate_limited", 429, 5, "Wait a moment and try again"],
  ["internal_error", 500, 5, "Try again. If it happens again, report the request id"],
])("%s, with status %i, returns exit code %i and leads to the advice %j", (code, status, exitCode, advice) => {
  expect(reportError(new ApiError(status, { code, message: "No.", request_id: "r-3" }))).toBe(exitCode);
  expect(printed).toContain(`No. (${code}, request r-3)\n→ `);
  expect(printed).toContain(advice);
});

const invalid = new ApiError(400, {
  code: "validation_error",
  message: "Two fields are not valid.",
  request_id: "r-2",
  details: [
    { path: "url", message: "must start with https://" },
    { path: "events.0", message: "must be\u001b[2J one of these" },
  ],
});

test("validation_error returns exit code 2 and prints each of several fields on a line of its own", () => {
  expect(reportError(invalid)).toBe(2);
  expect(printed).toBe(
    "Two fields are not valid. (validation_error, request r-2)\n  url must start with https://\n" +
      "  events.0 must be\\u001b[2J one of these\n→ Show the usage of a command: add --help\n",
  );
});

test.each<[string, Error, number, object]>([
  [
    "the API",
    invalid,
    2,
    { code: "validation_error", message: invalid.message, request_id: "r-2", details: invalid.details },
  ],
  [
    "the API, without details",
    new ApiError(429, { code: "rate_limited", message: "Not now.", request_id: "r-3" }),
    5,
    { code: "rate_limited", message: "Not now.", request_id: "r-3" },
  ],
  [
    "the network",
    new NetworkError("Could not reach http://127.0.0.1:9 (ECONNREFUSED)."),
    5,
    {
      code: "service_unreachable",
      message: "Could not reach http://127.0.0.1:9 (ECONNREFUSED). Check the base URL and your network.",
      request_id: null,
    },
  ],
  [
    "wrong arguments",
    usageError("Nothing to change.", "Pass --url."),
    2,
    { code: "usage_error", message: "Nothing to change. Pass --url.", request_id: null },
  ],
  [
    "a failed command",
    new CommandError(exitCodes.failed, "Could not listen."),
    1,
    { code: "failed", message: "Could not listen.", request_id: null },
  ],
])("with json, an error of %s is one line of JSON", (_, error, exitCode, expected) => {
  expect(reportError(error, { json: true })).toBe(exitCode);
  expect(printed).toMatch(/^[^\n]+\n$/);
  expect(JSON.parse(printed)).toEqual({ error: expected });
});
