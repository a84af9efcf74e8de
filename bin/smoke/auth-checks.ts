import { randomBytes, randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { uuid } from "../../functions/schema/input.ts";
import { assert, expectData, expectError } from "./assertions.ts";
import { type CheckGroup, requireProjects } from "./context.ts";
import { CheckSkipped, CheckWarning } from "./findings.ts";
import type { StageResponse } from "./stage-client.ts";

/* How the stage rejects unauthenticated and malformed requests, and the headers of every response. */

const UNKNOWN_ROUTE = "/v1/smoke-test/no-such-route";
/** Below a path that has endpoints. */
const nestedUnknownRoute = (id: string) => `/v1/projects/${id}/nonsense`;
/** Clock skew above which the check warns. The service accepts JWTs with up to a minute of skew. */
const MAX_CLOCK_SKEW_MS = 30_000;

export const reach: CheckGroup = {
  title: "Reachability",
  sections: ["The first five minutes", "Roll back a deployment"],
  checks: [
    {
      claim: "the stage responds",
      isGate: true,
      async run({ send, options }) {
        await send("GET", "/v1/projects");
        return options.baseUrl.startsWith("https:")
          ? "over TLS, certificate verified"
          : "over plain http, on this machine";
      },
    },
    {
      claim: "its clock agrees with this machine's clock",
      async run({ responses }) {
        const [first] = responses as [StageResponse];
        const date = Date.parse(first.headers.get("date") ?? "");
        if (Number.isNaN(date)) throw new CheckSkipped("responses have no Date header");
        // Date has whole seconds: on average it is half a second behind.
        const skewMs = date + 500 - (first.sentAt + first.receivedAt) / 2;
        const seconds = Math.round(Math.abs(skewMs) / 1000);
        const skew = `this machine is ${seconds} s ${skewMs > 0 ? "behind" : "ahead"}`;
        if (Math.abs(skewMs) > MAX_CLOCK_SKEW_MS) {
          throw new CheckWarning(
            `${skew}: the stage may reject tokens and signatures made here; synchronize the clock`,
          );
        }
        return seconds > 1 ? skew : undefined;
      },
    },
    {
      claim: "an unknown route returns 404",
      async run({ send }) {
        expectError(await send("GET", UNKNOWN_ROUTE), "not_found");
        // With an Authorization header, API Gateway's default is an error about a missing AWS signature.
        expectError(await send("GET", UNKNOWN_ROUTE, { token: "junk" }), "not_found");
      },
    },
    {
      claim: "an unknown route of a project returns 404, with and without Authorization",
      async run({ send, sendAsUser, options }) {
        const path = nestedUnknownRoute(options.projectId ?? randomUUID());
        expectError(await send("GET", path), "not_found");
        expectError(await sendAsUser("GET", path), "not_found");
        expectError(await send("GET", path, { token: "junk" }), "not_found");
      },
    },
    {
      claim: "an unsupported method returns 405 with the allowed ones",
      async run({ send }) {
        const response = await send("PUT", "/v1/projects");
        expectError(response, "method_not_allowed");
        const allow = response.headers.get("allow");
        assert(/\bGET\b/.test(allow ?? ""), `PUT /v1/projects: expected Allow: GET, got ${allow ?? "no Allow header"}`);
      },
    },
  ],
};

export const credentials: CheckGroup = {
  title: "Credentials",
  sections: ["rejected-credentials", "authorizer-errors"],
  checks: [
    {
      claim: "a request without credentials returns 401 with a Bearer challenge",
      async run({ send }) {
        const response = await send("GET", "/v1/projects");
        expectError(response, "unauthorized");
        expectChallenge(response);
      },
    },
    {
      claim: "a malformed JWT is rejected",
      async run({ send }) {
        const response = await send("GET", "/v1/projects", { token: "junk.junk.junk" });
        expectError(response, "invalid_token");
        expectChallenge(response);
      },
    },
    {
      claim: "a partner key (svcp_) is treated as a JWT and rejected",
      async run({ send }) {
        expectError(await send("GET", "/v1/projects", { token: `svcp_${randomHex()}` }), "invalid_token");
      },
    },
    {
      claim: "an unknown API key is rejected",
      async run({ send }) {
        expectError(await send("GET", "/v1/projects", { token: `svc_${randomHex()}` }), "invalid_api_key");
      },
    },
    {
      claim: "the JWT is accepted",
      async run(context) {
        const response = await context.sendAsUser("GET", "/v1/projects");
        context.projects = expectData(response, 200, z.array(project));
        const count = context.projects.length;
        return `${count} project${count === 1 ? "" : "s"}`;
      },
    },
  ],
};

const project = z.object({ id: uuid, name: z.string(), role: z.string() });

const randomHex = () => randomBytes(32).toString("hex");

function expectChallenge({ request, headers }: StageResponse): void {
  const challenge = headers.get("www-authenticate") ?? "no WWW-Authenticate header";
  assert(/^Bearer\b/i.test(challenge), `${request}: expected WWW-Authenticate: Bearer, got ${challenge}`);
}

const keysPath = "/v1/api-keys";

export const bodies: CheckGroup = {
  title: "Request bodies",
  sections: ["api-errors", "Roll back a deployment"],
  checks: [
    {
      claim: "invalid JSON returns 400",
      async run(context) {
        requireProjects(context);
        const { sendAsUser, mark } = context;
        expectError(await sendAsUser("POST", keysPath, { text: `{"name":"${mark}` }), "invalid_json");
      },
    },
    {
      claim: "a content type other than JSON returns 415",
      async run(context) {
        requireProjects(context);
        const plain = { body: { name: context.mark }, contentType: "text/plain" };
        expectError(await context.sendAsUser("POST", keysPath, plain), "unsupported_media_type");
      },
    },
    {
      claim: "invalid input returns 400 and names the field",
      async run(context) {
        requireProjects(context);
        const response = await context.sendAsUser("POST", keysPath, { body: { name: 7 } });
        const { error } = expectError(response, "validation_error");
        const isNamed = error.details?.some(({ path, message }) => path === "name" && message !== "") ?? false;
        assert(isNamed, `POST ${keysPath} with a number as the name: error.details does not list the field "name"`);
      },
    },
    {
      claim: "a body over 64 KB returns 413",
      async run(context) {
        requireProjects(context);
        const { sendAsUser, mark } = context;
        const large = { name: mark, padding: "x".repeat(64 * 1024) };
        expectError(await sendAsUser("POST", keysPath, { body: large }), "payload_too_large");
      },
    },
  ],
};

/** Rules for every response, checked over all responses of the run. */
export const everyResponse: CheckGroup = {
  title: "Every response",
  sections: ["api-errors", "Roll back a deployment"],
  checks: [
    {
      claim: "forbids caching and content sniffing",
      async run({ responses }) {
        assertAll(responses, "Cache-Control: no-store", ({ headers }) =>
          /no-store/.test(headers.get("cache-control") ?? ""),
        );
        assertAll(
          responses,
          "X-Content-Type-Options: nosniff",
          ({ headers }) => headers.get("x-content-type-options") === "nosniff",
        );
        return `${responses.length} responses`;
      },
    },
    {
      claim: "requires TLS (Strict-Transport-Security)",
      async run({ responses, options }) {
        if (!options.baseUrl.startsWith("https:")) {
          throw new CheckSkipped("the connection is plain http", { isExcused: true });
        }
        assertAll(responses, "Strict-Transport-Security", ({ headers }) => headers.has("strict-transport-security"));
      },
    },
    {
      claim: "has a request id, which errors repeat in the body",
      async run({ responses }) {
        assertAll(responses, "x-request-id", ({ headers }) => (headers.get("x-request-id") ?? "") !== "");
        assertAll(responses, "the same id in x-request-id and error.request_id", ({ headers, status, json }) => {
          const error = z.safeParse(z.object({ error: z.object({ request_id: z.string() }) }), json);
          return status < 400 || (error.success && error.data.error.request_id === headers.get("x-request-id"));
        });
        return undefined;
      },
    },
  ],
};

/** @param expected what every response must have, as a noun: `x-request-id` */
function assertAll(responses: StageResponse[], expected: string, isMet: (response: StageResponse) => boolean): void {
  const [first, ...others] = responses.filter((response) => !isMet(response));
  if (first === undefined) return;
  const more = others.length === 0 ? "" : ` (nor do ${others.length} of ${responses.length - 1} other responses)`;
  assert(false, `${first.request}: the ${first.status} response does not have ${expected}${more}`);
}
