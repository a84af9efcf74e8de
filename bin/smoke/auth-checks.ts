import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { uuid } from "../../functions/schema/input.ts";
import { assert, expectData, expectError } from "./assertions.ts";
import { type CheckGroup, signedIn } from "./context.ts";
import { CheckSkipped, CheckWarning } from "./findings.ts";
import type { Answer } from "./stage-client.ts";

/* What the stage says to those whom it does not let in, and to requests that are none. */

const NO_ROUTE = "/v1/smoke-test/no-such-route";
/** Further apart than that, JWTs come to be refused soon: the service allows for a minute. */
const MAX_CLOCK_SKEW_MS = 30_000;

export const reach: CheckGroup = {
  title: "Reach",
  sections: ["The first five minutes", "Roll back a deployment"],
  checks: [
    {
      claim: "it answers",
      isGate: true,
      async run({ send, options }) {
        await send("GET", "/v1/projects");
        return options.baseUrl.startsWith("https:")
          ? "over TLS, certificate verified"
          : "over plain http, on this machine";
      },
    },
    {
      claim: "its clock and this one agree",
      async run({ answers }) {
        const [first] = answers as [Answer];
        const date = Date.parse(first.headers.get("date") ?? "");
        if (Number.isNaN(date)) throw new CheckSkipped("answers have no Date");
        // The header has whole seconds.
        const skewMs = date + 500 - (first.sentAt + first.receivedAt) / 2;
        const seconds = Math.round(Math.abs(skewMs) / 1000);
        const off = `this machine is ${seconds} s ${skewMs > 0 ? "behind" : "ahead"}`;
        if (Math.abs(skewMs) > MAX_CLOCK_SKEW_MS)
          throw new CheckWarning(`${off}: tokens and signatures made here may be refused`);
        return seconds > 1 ? off : undefined;
      },
    },
    {
      claim: "an unknown route is a 404",
      async run({ send }) {
        expectError(await send("GET", NO_ROUTE), "not_found");
        // With this header API Gateway would rather see an AWS signature.
        expectError(await send("GET", NO_ROUTE, { token: "junk" }), "not_found");
        return undefined;
      },
    },
    {
      claim: "another method is a 405 that lists those allowed",
      async run({ send }) {
        const answer = await send("PUT", "/v1/projects");
        expectError(answer, "method_not_allowed");
        const allow = answer.headers.get("allow");
        assert(/\bGET\b/.test(allow ?? ""), `PUT /v1/projects: wanted Allow: GET, got ${allow ?? "no Allow"}`);
        return undefined;
      },
    },
  ],
};

export const credentials: CheckGroup = {
  title: "Credentials",
  sections: ["rejected-credentials", "authorizer-errors"],
  checks: [
    {
      claim: "without credentials it is a 401 that asks for them",
      async run({ send }) {
        const answer = await send("GET", "/v1/projects");
        expectError(answer, "unauthorized");
        expectChallenge(answer);
        return undefined;
      },
    },
    {
      claim: "a JWT that is none is refused",
      async run({ send }) {
        const answer = await send("GET", "/v1/projects", { token: "junk.junk.junk" });
        expectError(answer, "invalid_token");
        expectChallenge(answer);
        return undefined;
      },
    },
    {
      claim: "a partner key (svcp_) is taken for a JWT",
      async run({ send }) {
        expectError(await send("GET", "/v1/projects", { token: `svcp_${anyHex()}` }), "invalid_token");
        return undefined;
      },
    },
    {
      claim: "an API key that never was is refused",
      async run({ send }) {
        expectError(await send("GET", "/v1/projects", { token: `svc_${anyHex()}` }), "invalid_api_key");
        return undefined;
      },
    },
    {
      claim: "the JWT is let in",
      async run(scene) {
        const answer = await scene.send("GET", "/v1/projects", { token: scene.options.token });
        scene.projects = expectData(answer, 200, z.array(project));
        const count = scene.projects.length;
        return `${count} project${count === 1 ? "" : "s"}`;
      },
    },
  ],
};

const project = z.object({ id: uuid, name: z.string(), role: z.string() });

const anyHex = () => randomBytes(32).toString("hex");

function expectChallenge({ request, headers }: Answer): void {
  const challenge = headers.get("www-authenticate") ?? "none";
  assert(/^Bearer\b/i.test(challenge), `${request}: wanted WWW-Authenticate: Bearer, got ${challenge}`);
}

const keysPath = "/v1/api-keys";

export const bodies: CheckGroup = {
  title: "Bodies",
  sections: ["api-errors", "Roll back a deployment"],
  checks: [
    {
      claim: "broken JSON is a 400",
      async run(scene) {
        signedIn(scene);
        const { send, options, mark } = scene;
        const answer = await send("POST", keysPath, { token: options.token, text: `{"name":"${mark}` });
        expectError(answer, "invalid_json");
        return undefined;
      },
    },
    {
      claim: "a body that is not JSON is a 415",
      async run(scene) {
        signedIn(scene);
        const { send, options, mark } = scene;
        const plain = { token: options.token, body: { name: mark }, contentType: "text/plain" };
        expectError(await send("POST", keysPath, plain), "unsupported_media_type");
        return undefined;
      },
    },
    {
      claim: "wrong input is a 400 that says where",
      async run(scene) {
        signedIn(scene);
        const { send, options } = scene;
        const { error } = expectError(
          await send("POST", keysPath, { token: options.token, body: { name: 7 } }),
          "validation_error",
        );
        const isNamed = error.details?.some(({ path, message }) => path === "name" && message !== "") ?? false;
        assert(isNamed, `POST ${keysPath} with a number for a name: error.details does not name it`);
        return undefined;
      },
    },
    {
      claim: "a body of more than 64 KB is a 413",
      async run(scene) {
        signedIn(scene);
        const { send, options, mark } = scene;
        const large = { name: mark, padding: "x".repeat(64 * 1024) };
        expectError(await send("POST", keysPath, { token: options.token, body: large }), "payload_too_large");
        return undefined;
      },
    },
  ],
};

/** Rules for all answers, checked over those that came by. */
export const everyAnswer: CheckGroup = {
  title: "Every answer",
  sections: ["api-errors", "Roll back a deployment"],
  checks: [
    {
      claim: "no answer may be cached or sniffed",
      async run({ answers }) {
        promiseOfAll(answers, "Cache-Control: no-store", ({ headers }) =>
          /no-store/.test(headers.get("cache-control") ?? ""),
        );
        promiseOfAll(
          answers,
          "X-Content-Type-Options: nosniff",
          ({ headers }) => headers.get("x-content-type-options") === "nosniff",
        );
        return `${answers.length} answers`;
      },
    },
    {
      claim: "every answer insists on TLS (Strict-Transport-Security)",
      async run({ answers, options }) {
        if (!options.baseUrl.startsWith("https:")) {
          throw new CheckSkipped("it is spoken to over plain http", { isExcused: true });
        }
        promiseOfAll(answers, "Strict-Transport-Security", ({ headers }) => headers.has("strict-transport-security"));
        return undefined;
      },
    },
    {
      claim: "every answer has its request's id, errors in the body too",
      async run({ answers }) {
        promiseOfAll(answers, "x-request-id", ({ headers }) => (headers.get("x-request-id") ?? "") !== "");
        promiseOfAll(answers, "the same id in x-request-id and error.request_id", ({ headers, status, json }) => {
          const error = z.safeParse(z.object({ error: z.object({ request_id: z.string() }) }), json);
          return status < 400 || (error.success && error.data.error.request_id === headers.get("x-request-id"));
        });
        return undefined;
      },
    },
  ],
};

function promiseOfAll(answers: Answer[], what: string, holds: (answer: Answer) => boolean): void {
  const [first, ...others] = answers.filter((answer) => !holds(answer));
  if (first === undefined) return;
  const more = others.length === 0 ? "" : ` (and ${others.length} of ${answers.length - 1} other answers)`;
  assert(false, `${first.request}, answered ${first.status}, has not ${what}${more}`);
}
