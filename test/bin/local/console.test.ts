import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { consolePages } from "../../../bin/local/console.ts";
import { createGateway } from "../../../bin/local/gateway.ts";
import { fromSources } from "../../../bin/local/lambda.ts";
import { sqs } from "../../../functions/platform/aws.ts";
import { queueUrl } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import { freshResources } from "../../support/resources.ts";

/* How a local run serves the console, and from whom it takes events for the queue. */

let server: http.Server;
let host: string;

beforeAll(async () => {
  await freshResources();
  logSink.write = () => {};
  server = await createGateway(fromSources, consolePages());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Any headers at all, `Host` and `Origin` included, which fetch would not let us choose. */
async function ask(method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<Answer> {
  const request = http.request(`http://${host}${path}`, { method, headers, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, body: text };
}

const codeOf = ({ status, body }: Answer) => ({ status, code: JSON.parse(body).error.code });

describe("the page", () => {
  test.each([
    ["/console/", "text/html; charset=utf-8"],
    ["/console/index.html", "text/html; charset=utf-8"],
    ["/console/main.js", "text/javascript; charset=utf-8"],
    ["/console/console.css", "text/css; charset=utf-8"],
    ["/console/icon.svg", "image/svg+xml"],
    ["/console/config.json", "application/json"],
  ])("%s comes as %s, with headers that let it run its own script and no other", async (path, type) => {
    const { status, headers, body } = await ask("GET", path);
    expect({ status, type: headers["content-type"] }).toEqual({ status: 200, type });
    expect(body.length).toBeGreaterThan(10);
    const policy = headers["content-security-policy"]?.toString().split("; ");
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ]),
    );
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
  });

  test("is not sent again while it has not changed", async () => {
    const { headers } = await ask("GET", "/console/main.js");
    const again = await ask("GET", "/console/main.js", { "If-None-Match": String(headers.etag) });
    expect({ status: again.status, body: again.body }).toEqual({ status: 304, body: "" });
  });

  test("is where a browser is sent that opens the address, and nobody else", async () => {
    for (const path of ["/console", "/"]) {
      const { status, headers } = await ask("GET", path, { Accept: "text/html,application/xhtml+xml" });
      expect({ status, location: headers.location }).toEqual({ status: 302, location: "/console/" });
    }
    expect(codeOf(await ask("GET", "/", { Accept: "application/json" }))).toEqual({ status: 404, code: "not_found" });
    expect(codeOf(await ask("GET", "/v1/projects", { Accept: "text/html" }))).toEqual({
      status: 401,
      code: "unauthorized",
    });
  });

  test.each([
    ["GET", "/console/nothing.js", 404, "not_found"],
    ["GET", "/console/../bin/local.ts", 404, "not_found"],
    ["GET", "/console/%2e%2e/package.json", 404, "not_found"],
    ["POST", "/console/main.js", 405, "method_not_allowed"],
    ["GET", "/console/events", 405, "method_not_allowed"],
    ["OPTIONS", "/console/events", 405, "method_not_allowed"],
  ])("%s %s is refused in the API's shape", async (method, path, status, code) => {
    expect(codeOf(await ask(method, path))).toEqual({ status, code });
  });

  test("is not served to other names of this machine", async () => {
    for (const name of ["attacker.example", `attacker.example:${host.split(":")[1]}`, "127.0.0.1.nip.io", "[::1]"]) {
      expect(codeOf(await ask("GET", "/console/", { Host: name }))).toEqual({ status: 403, code: "forbidden" });
    }
    expect((await ask("GET", "/console/", { Host: "localhost:3000" })).status).toBe(200);
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
    ["of another origin", () => ({ ...ownHeaders(), Origin: "http://attacker.example" })],
    ["of another port of this machine", () => ({ ...ownHeaders(), Origin: "http://127.0.0.1:1" })],
    ["of no origin", () => ({ "X-Console": "1", "Content-Type": "application/json" })],
    ["of a sandboxed frame", () => ({ ...ownHeaders(), Origin: "null" })],
    ["that a browser calls cross-site", () => ({ ...ownHeaders(), "Sec-Fetch-Site": "cross-site" })],
    ["without the mark, as a form would send it", () => ({ Origin: `http://${host}`, "Content-Type": "text/plain" })],
    [
      "of a name that was rebound to this machine",
      () => ({ ...ownHeaders(), Host: "attacker.example", Origin: "http://attacker.example" }),
    ],
  ])("is not taken from a page %s", async (_, headers) => {
    expect(codeOf(await ask("POST", "/console/events", headers(), wanted))).toEqual({ status: 403, code: "forbidden" });
    expect(await queued()).toEqual([]);
  });

  test.each([
    ["no JSON", "{", 400, "invalid_json"],
    ["an unknown event", JSON.stringify({ project_id: project, event: "deploy.paused" }), 400, "validation_error"],
    ["no project", JSON.stringify({ event: "deploy.failed" }), 400, "validation_error"],
    ["null", "null", 400, "validation_error"],
    ["too much", JSON.stringify({ project_id: "x".repeat(10_000) }), 413, "payload_too_large"],
  ])("with %s is refused", async (_, body, status, code) => {
    expect(codeOf(await ask("POST", "/console/events", ownHeaders(), body))).toEqual({ status, code });
    expect(await queued()).toEqual([]);
  });

  test("from the console goes to the queue, and no other page may read the answer", async () => {
    const answer = await ask("POST", "/console/events", ownHeaders(), wanted);
    expect(answer.status).toBe(202);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    const { deployment_id } = JSON.parse(answer.body).data;
    expect(await queued()).toEqual([
      expect.objectContaining({ project_id: project, event: "deploy.failed", deployment_id }),
    ]);
  });
});

test("the deployed functions know nothing of the console's events", async () => {
  const plain = await createGateway(fromSources);
  plain.listen(0, "127.0.0.1");
  await once(plain, "listening");
  const url = `http://127.0.0.1:${(plain.address() as AddressInfo).port}/console/events`;
  expect((await fetch(url, { method: "POST" })).status).toBe(404);
  await new Promise((resolve) => plain.close(resolve));
  plain.closeAllConnections();
});
