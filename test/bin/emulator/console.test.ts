import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { consolePages } from "../../../bin/emulator/console.ts";
import { createGateway } from "../../../bin/emulator/gateway.ts";
import { fromSources } from "../../../bin/emulator/lambda.ts";
import openApi from "../../../docs/openapi.json" with { type: "json" };
import { sqs } from "../../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../functions/foundation/platform/log.ts";
import { contentSecurityPolicy, pageHeaders } from "../../../lib/console-headers.ts";
import { listening } from "../../support/listening.ts";
import { freshResources } from "../../support/resources.ts";

/* How a local run serves its pages, and which requests may send an event to the queue. */

const settings = { dataDir: "/tmp/a <b> & 'c'", isSecretGiven: false };
let host: string;

const documentedOperations = Object.values(openApi.paths).flatMap((path) =>
  Object.values(path).filter((operation) => "summary" in operation),
);

beforeAll(async () => {
  await freshResources();
  logSink.write = () => {};
  host = new URL(await listening(await createGateway(fromSources, consolePages(settings)))).host;
});

interface Reply {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Sends a request with any headers: fetch does not allow `Host` and `Origin`. */
async function call(method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<Reply> {
  const request = http.request(`http://${host}${path}`, { method, headers, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, body: text };
}

const codeOf = ({ status, body }: Reply) => ({ status, code: JSON.parse(body).error.code });

describe("the console's page", () => {
  test.each([
    ["/console/", "text/html; charset=utf-8"],
    ["/console/index.html", "text/html; charset=utf-8"],
    ["/console/main.js", "text/javascript; charset=utf-8"],
    ["/console/console.css", "text/css; charset=utf-8"],
    ["/console/icon.svg", "image/svg+xml"],
    ["/console/config.json", "application/json"],
  ])("%s is served as %s, with headers that allow only its own script", async (path, type) => {
    const { status, headers, body } = await call("GET", path);
    expect({ status, type: headers["content-type"] }).toEqual({ status: 200, type });
    expect(body.length).toBeGreaterThan(10);
    // test/lib/console.test.ts has their values.
    expect(headers["content-security-policy"]).toBe(contentSecurityPolicy(""));
    for (const [name, value] of Object.entries(pageHeaders)) expect(headers[name.toLowerCase()]).toBe(value);
  });

  test.each(["/console/main.js", "/docs"])("is not sent again while it is unchanged: %s", async (path) => {
    const { headers } = await call("HEAD", path);
    const again = await call("GET", path, { "If-None-Match": String(headers.etag) });
    expect({ status: again.status, body: again.body }).toEqual({ status: 304, body: "" });
  });

  test("knows the command that prints a link which signs in", async () => {
    const { signInCommand } = JSON.parse((await call("GET", "/console/config.json")).body);
    expect(signInCommand).toMatch(/^DATA_DIR='.+ npm run --silent console$/);
  });

  test("is where /console redirects to", async () => {
    const { status, headers } = await call("GET", "/console");
    expect({ status, location: headers.location }).toEqual({ status: 302, location: "/console/" });
  });

  test.each([
    ["GET", "/console/nothing.js", 404, "not_found"],
    ["GET", "/console/../bin/local.ts", 404, "not_found"],
    ["GET", "/console/%2e%2e/package.json", 404, "not_found"],
    ["POST", "/console/main.js", 405, "method_not_allowed"],
    ["POST", "/docs", 405, "method_not_allowed"],
    ["GET", "/console/events", 405, "method_not_allowed"],
    ["OPTIONS", "/console/events", 405, "method_not_allowed"],
  ])("%s %s is rejected in the API's shape", async (method, path, status, code) => {
    expect(codeOf(await call(method, path))).toEqual({ status, code });
  });

  test("is not served under another host name", async () => {
    for (const name of ["attacker.example", `attacker.example:${host.split(":")[1]}`, "127.0.0.1.nip.io", "[::1]"]) {
      expect(codeOf(await call("GET", "/console/", { Host: name }))).toEqual({ status: 403, code: "forbidden" });
    }
    expect(codeOf(await call("GET", "/docs", { Host: "attacker.example" })).status).toBe(403);
    expect((await call("GET", "/console/", { Host: "localhost:3000" })).status).toBe(200);
  });
});

describe("the API page", () => {
  test("is served at /docs, complete in one file, with a policy that allows its own scripts only", async () => {
    const { status, headers, body } = await call("GET", "/docs");
    expect({ status, type: headers["content-type"] }).toEqual({ status: 200, type: "text/html; charset=utf-8" });
    expect(headers["content-security-policy"]).toBe("frame-ancestors 'none'");
    const [, policy = ""] = /<meta http-equiv="Content-Security-Policy" content="([^"]+)">/.exec(body) ?? [];
    expect(policy).toMatch(/^default-src 'none'; script-src( 'sha256-[\w+/]{43}=')+; style-src 'unsafe-inline'; /);
    expect(policy).not.toMatch(/https?:|connect-src/);
    expect(body).not.toMatch(/<(script|link)[^>]+(src|href)=/);
    for (const { summary } of documentedOperations) expect(body).toContain(summary);
  });
});

describe("the address of the API itself", () => {
  const browser = { Accept: "text/html,application/xhtml+xml" };

  test("leads a browser to the console", async () => {
    expect(await call("GET", "/", browser)).toMatchObject({ status: 302, headers: { location: "/console/" } });
  });

  test("leads nowhere under another host name", async () => {
    const reply = await call("GET", "/", { ...browser, Host: "attacker.example" });
    expect(codeOf(reply)).toEqual({ status: 403, code: "forbidden" });
  });

  test.each<[string, string, string, object, number, string]>([
    ["an API client at /", "GET", "/", { Accept: "application/json" }, 404, "not_found"],
    ["a client without Accept at /", "GET", "/", {}, 404, "not_found"],
    ["a POST from a browser to /", "POST", "/", { Accept: "text/html" }, 404, "not_found"],
    ["a browser at a path of the API", "GET", "/v1/projects", { Accept: "text/html" }, 401, "unauthorized"],
  ])("%s gets the API's error", async (_, method, path, headers, status, code) => {
    expect(codeOf(await call(method, path, headers as Record<string, string>))).toEqual({ status, code });
  });
});

describe("a deployment event", () => {
  const project = randomUUID();
  const wanted = JSON.stringify({ project_id: project, event: "deploy.failed" });
  const ownHeaders = () => ({
    Origin: `http://${host}`,
    "X-Console": "1",
    "Content-Type": "application/json",
    "Sec-Fetch-Site": "same-origin",
  });

  async function queued(): Promise<{ deployment_id: string; event: string; project_id: string }[]> {
    const { Messages = [] } = await sqs().send(
      new ReceiveMessageCommand({ QueueUrl: queueUrl("events"), MaxNumberOfMessages: 10, VisibilityTimeout: 0 }),
    );
    return Messages.map(({ Body = "" }) => JSON.parse(Body));
  }

  test.each<[string, () => Record<string, string>]>([
    ["with another origin", () => ({ ...ownHeaders(), Origin: "http://attacker.example" })],
    ["with another port of this machine as its origin", () => ({ ...ownHeaders(), Origin: "http://127.0.0.1:1" })],
    ["without an origin", () => ({ "X-Console": "1", "Content-Type": "application/json" })],
    ["from a sandboxed frame", () => ({ ...ownHeaders(), Origin: "null" })],
    ["that the browser marks as cross-site", () => ({ ...ownHeaders(), "Sec-Fetch-Site": "cross-site" })],
    [
      "without the header X-Console, as a form would send it",
      () => ({ Origin: `http://${host}`, "Content-Type": "text/plain" }),
    ],
    [
      "under a foreign name that resolves to this machine",
      () => ({ ...ownHeaders(), Host: "attacker.example", Origin: "http://attacker.example" }),
    ],
  ])("is rejected in a request %s", async (_, headers) => {
    expect(codeOf(await call("POST", "/console/events", headers(), wanted))).toEqual({
      status: 403,
      code: "forbidden",
    });
    expect(await queued()).toEqual([]);
  });

  test.each([
    ["invalid JSON", "{", 400, "invalid_json"],
    ["an unknown event", JSON.stringify({ project_id: project, event: "deploy.unknown" }), 400, "validation_error"],
    ["an absent project", JSON.stringify({ event: "deploy.failed" }), 400, "validation_error"],
    ["null", "null", 400, "validation_error"],
    ["a body over 4 KB", JSON.stringify({ project_id: "x".repeat(10_000) }), 413, "payload_too_large"],
    ["a body of 5 MB", "x".repeat(5_000_000), 413, "payload_too_large"],
  ])("with %s is rejected", async (_, body, status, code) => {
    expect(codeOf(await call("POST", "/console/events", ownHeaders(), body))).toEqual({ status, code });
    expect(await queued()).toEqual([]);
  });

  test("from the console is queued, and no other origin may read the response", async () => {
    const reply = await call("POST", "/console/events", ownHeaders(), wanted);
    expect(reply.status).toBe(202);
    expect(Object.keys(reply.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    const { deployment_id } = JSON.parse(reply.body).data;
    expect(await queued()).toEqual([
      expect.objectContaining({ project_id: project, event: "deploy.failed", deployment_id }),
    ]);
  });
});
