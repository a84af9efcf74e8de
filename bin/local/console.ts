import { createHash, randomUUID } from "node:crypto";
import type http from "node:http";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { readDeploymentEvent } from "../../functions/deployments/deployment-event.ts";
import { sampleEvent } from "../../functions/deployments/sample-event.ts";
import { securityHeaders } from "../../functions/manifest/response-headers.ts";
import { sqs } from "../../functions/platform/aws.ts";
import { queueUrl } from "../../functions/platform/env.ts";
import { ApiError } from "../../functions/platform/errors.ts";
import { logSink } from "../../functions/platform/log.ts";
import { contentSecurityPolicy, pageCacheControl, pageHeaders, pageTypes } from "../../lib/console-headers.ts";
import type { PageFile } from "../../packages/console/build.ts";

/*
 * The console of a local run: its page, beside the API, and what plays the deployment pipeline for it. AWS has no part of
 * this: there the page is in a bucket.
 */

/** Answers what is not the API's. @returns false for what is */
export type AnswerPage = (request: http.IncomingMessage, response: http.ServerResponse) => boolean;

const ADDRESS = "/console/";
const CONFIG = JSON.stringify({ apiUrl: "", isLocal: true });

/** Serves the console below `/console/`. Its page is bundled when it is first asked for. */
export function consolePages(): AnswerPage {
  let files: Promise<Map<string, Uint8Array>> | undefined;

  async function serveFile(name: string, { headers }: http.IncomingMessage): Promise<Answer> {
    files ??= bundle().catch((error) => {
      files = undefined;
      throw error;
    });
    const body = name === "config.json" ? Buffer.from(CONFIG) : (await files).get(name || "index.html");
    if (body === undefined) throw new ApiError("not_found", "The console has no such file.");
    const etag = `"${createHash("sha256").update(body).digest("base64url")}"`;
    const type = pageTypes[(name || "index.html").split(".").at(-1) ?? ""] ?? "";
    const caching = { ETag: etag, "Cache-Control": pageCacheControl };
    if (headers["if-none-match"] === etag) return { status: 304, headers: caching, body: "" };
    return { status: 200, headers: { ...caching, "Content-Type": type }, body };
  }

  async function answer(path: string, request: http.IncomingMessage): Promise<Answer> {
    refuseForeignNames(request);
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (path === `${ADDRESS}events`) {
      if (request.method !== "POST") throw notAllowed("POST");
      return takeEvent(request);
    }
    if (!isRead) throw notAllowed("GET, HEAD");
    if (!path.startsWith(ADDRESS)) return { status: 302, headers: { Location: ADDRESS }, body: "" };
    return serveFile(path.slice(ADDRESS.length), request);
  }

  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    if (!isConsole(path, request)) return false;
    answer(path, request)
      .catch(refusal)
      .then(({ status, headers, body }) => {
        const safe = { ...pageHeaders, "Content-Security-Policy": contentSecurityPolicy("") };
        response.writeHead(status, { ...safe, ...headers }).end(request.method === "HEAD" ? undefined : body);
      });
    return true;
  };
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array;
}

/** Somebody who opens the address of the API in a browser wants a page. */
function isConsole(path: string, { method, headers }: http.IncomingMessage): boolean {
  const isBrowsing = method === "GET" && (headers.accept ?? "").includes("text/html");
  return path === "/console" || path.startsWith(ADDRESS) || (path === "/" && isBrowsing);
}

/** esbuild is loaded only now: the service starts without it. */
async function bundle(): Promise<Map<string, Uint8Array>> {
  const { buildConsole } = await import("../../packages/console/build.ts");
  const files: PageFile[] = await buildConsole();
  return new Map(files.map(({ name, body }) => [name, body]));
}

/**
 * A page elsewhere can give its own name this machine's address (DNS rebinding) and would then be of one origin with the
 * console. Its requests carry that name.
 * @throws ApiError `forbidden`
 */
function refuseForeignNames({ headers: { host = "" } }: http.IncomingMessage): void {
  if (/^(127\.0\.0\.1|localhost)(:\d+)?$/i.test(host)) return;
  throw new ApiError("forbidden", "The console is served to this machine: call it 127.0.0.1 or localhost.");
}

const MAX_EVENT_BYTES = 4096;

/**
 * POST /console/events `{project_id, event}`: puts a sample event on the queue, as `npm run event` does.
 * @throws ApiError `forbidden` unless the console's own page asks, or `validation_error`
 */
async function takeEvent(request: http.IncomingMessage): Promise<Answer> {
  const { origin, host, "x-console": mark, "sec-fetch-site": site = "same-origin" } = request.headers;
  // A form cannot send the mark, and a script of another page has to be allowed to first, which nobody does here.
  const isOwnPage = origin === `http://${host}` && site === "same-origin" && mark === "1";
  if (!isOwnPage) throw new ApiError("forbidden", "Only the console sends events here. Elsewhere: npm run event.");
  const { project_id, event } = await readJson(request);
  const sample = sampleEvent(event, { projectId: project_id, deploymentId: randomUUID(), now: new Date() });
  const message = JSON.stringify(sample);
  const read = readDeploymentEvent(message);
  if (!read.ok) throw new ApiError("validation_error", `This is no deployment event: ${read.reason}.`);
  await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: message }));
  const { deployment_id } = sample;
  return { status: 202, headers: answerHeaders(), body: JSON.stringify({ data: { deployment_id } }) };
}

// biome-ignore lint/suspicious/noExplicitAny: it is checked as the event that it becomes
async function readJson(request: http.IncomingMessage): Promise<any> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MAX_EVENT_BYTES) throw new ApiError("payload_too_large", "An event is smaller than this.");
  }
  try {
    return Object(JSON.parse(text));
  } catch (cause) {
    throw new ApiError("invalid_json", "The body is not valid JSON.", { cause });
  }
}

const notAllowed = (allow: string) =>
  new ApiError("method_not_allowed", "This path does not take that method.", { headers: { Allow: allow } });

const answerHeaders = () => ({
  ...securityHeaders,
  "Content-Type": "application/json",
  "x-request-id": randomUUID(),
});

/** In the shape of the API's errors, which the page shows. */
function refusal(thrown: unknown): Answer {
  if (!(thrown instanceof ApiError)) logSink.write("error", { message: `the console failed: ${String(thrown)}` });
  const error =
    thrown instanceof ApiError ? thrown : new ApiError("internal_error", "The console has failed. The log says why.");
  const headers = answerHeaders();
  return {
    status: error.status,
    headers: { ...headers, ...error.headers },
    body: error.toBody(headers["x-request-id"]),
  };
}
