import { randomBytes, randomUUID } from "node:crypto";
import { type ErrorCode, statusByCode } from "../../functions/foundation/platform/errors.ts";
import { ApiError, NetworkError } from "../../packages/client/src/errors.ts";
import { assert, type CheckContext, type CheckGroup } from "./check.ts";

/*
 * What API Gateway itself responds, or responds because of the authorizer. The local run only emulates it. These requests are
 * not those of a client: most are wrong on purpose.
 */

interface Request {
  /** Default: GET. */
  method?: string;
  /** Default: the list of projects. */
  path?: string;
  token?: string;
  body?: string;
}

/** Sends one request, without retries and redirects. @throws NetworkError */
async function ask(
  { options: { baseUrl }, limits: { requestMs } }: CheckContext,
  { method = "GET", path = "/v1/projects", token, body }: Request = {},
) {
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      redirect: "manual",
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      body: body ?? null,
      signal: AbortSignal.timeout(requestMs),
    });
    const { status, headers } = response;
    return { request: `${method} ${path}`, status, headers, text: await response.text() };
  } catch (error) {
    throw NetworkError.of(error, new URL(baseUrl).origin, requestMs / 1000);
  }
}

const MAX_EXCERPT_CHARACTERS = 160;

/** @throws Error unless the response is the error with this code, with the headers of all errors */
function expectError(response: Awaited<ReturnType<typeof ask>>, code: ErrorCode): void {
  const { request, status, headers, text } = response;
  const error = ApiError.of(response);
  if (status !== statusByCode[code] || error?.code !== code) {
    const excerpt = text.replaceAll(/\s+/g, " ").slice(0, MAX_EXCERPT_CHARACTERS) || "with an empty body";
    throw new Error(`${request}: expected ${statusByCode[code]} ${code}, got ${status} ${excerpt}`);
  }
  const required: [header: string, pattern: RegExp][] = [
    ["cache-control", /no-store/],
    ["x-content-type-options", /^nosniff$/],
    ...(status === 401 ? [["www-authenticate", /^Bearer\b/] as [string, RegExp]] : []),
    ...(status === 405 ? [["allow", /\bGET\b/] as [string, RegExp]] : []),
  ];
  assert(headers.get("x-request-id") === error.requestId, `${request}: x-request-id is not the id in the body`);
  for (const [name, pattern] of required) {
    const value = headers.get(name) ?? "no such header";
    assert(pattern.test(value), `${request}: expected ${name} to match ${pattern}, got ${value}`);
  }
}

const secretPart = randomBytes(32).toString("hex");

const rejectedRequests = (userToken: string): (Request & { claim: string; code: ErrorCode })[] => [
  { claim: "an unknown route returns 404", path: "/v1/smoke-test/no-such-route", code: "not_found" },
  {
    // API Gateway's default is an error about a missing AWS signature.
    claim: "an unknown route returns 404 with any Authorization too",
    path: `/v1/projects/${randomUUID()}/nonsense`,
    token: "junk",
    code: "not_found",
  },
  { claim: "an unsupported method returns 405 with the allowed ones", method: "PUT", code: "method_not_allowed" },
  { claim: "a request without credentials returns 401", code: "unauthorized" },
  { claim: "a malformed JWT is rejected", token: "junk.junk.junk", code: "invalid_token" },
  { claim: "a partner key is treated as a JWT and rejected", token: `svcp_${secretPart}`, code: "invalid_token" },
  { claim: "an unknown API key is rejected", token: `svc_${secretPart}`, code: "invalid_api_key" },
  {
    claim: "a body over 64 KB returns 413",
    method: "POST",
    path: "/v1/api-keys",
    token: userToken,
    body: JSON.stringify({ name: "x".repeat(64 * 1024) }),
    code: "payload_too_large",
  },
];

export const gateway: CheckGroup = {
  title: "Rejected requests",
  sections: ["The first five minutes", "api-errors", "rejected-credentials"],
  async run(context, check) {
    const { options } = context;
    const { headers } = await check("the stage responds", () => ask(context));
    for (const { claim, code, ...request } of rejectedRequests(options.token)) {
      // None depends on another: all faults are reported.
      await check(claim, async () => expectError(await ask(context, request), code)).catch(() => {});
    }
    if (!options.baseUrl.startsWith("https:")) return;
    await check("responses over TLS require it (Strict-Transport-Security)", async () =>
      assert(headers.has("strict-transport-security"), "GET /v1/projects: no Strict-Transport-Security"),
    ).catch(() => {});
  },
};
