import { createHash, randomUUID } from "node:crypto";
import type http from "node:http";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import { sampleFields } from "../../functions/foundation/events/sample-event.ts";
import { securityHeaders } from "../../functions/foundation/manifest/response-headers.ts";
import { queueUrl } from "../../functions/foundation/platform/env.ts";
import { ApiError } from "../../functions/foundation/platform/errors.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import {
  API_PAGE,
  apiPagePolicy,
  contentSecurityPolicy,
  pageCacheControl,
  pageHeaders,
  pageTypes,
} from "../../lib/console-headers.ts";
import type { PageFile } from "../../packages/console/build.ts";
import { sendEvent as sendToQueue } from "../command/send-event.ts";
import type { LocalSettings } from "../command/settings.ts";
import { scriptCommand } from "../command/shell-commands.ts";
import { readBody } from "./read-body.ts";

/*
 * The console and the API page of a local run, on the port of the API, and the endpoint by which the console sends a deployment
 * event. None of this is deployed: on AWS both pages are served from a bucket.
 */

/** Responds to requests for pages. Returns false, without a response, for a request to the API. */
export type ServePages = (request: http.IncomingMessage, response: http.ServerResponse) => boolean;

const CONSOLE = "/console/";
const DOCS = "/docs";

/**
 * Serves the console below `/console/`, to which a browser at `/` is redirected, and the API page at `/docs`. Each is built at the first
 * request for it.
 */
export function consolePages(settings: Pick<LocalSettings, "dataDir" | "isSecretGiven">): ServePages {
  const config = JSON.stringify({ apiUrl: "", isLocal: true, signInCommand: scriptCommand("console", "", settings) });
  let files: Promise<Map<string, Uint8Array>> | undefined;
  let apiPage: Promise<string> | undefined;

  async function serveFile(name: string, { headers }: http.IncomingMessage): Promise<PageResponse> {
    files ??= bundle();
    const body = name === "config.json" ? config : (await files).get(name);
    if (body === undefined) throw new ApiError("not_found", "The console has no such file.");
    return send(name, body, headers);
  }

  async function serveApiPage({ headers }: http.IncomingMessage): Promise<PageResponse> {
    apiPage ??= renderApiPage();
    const { headers: sent, ...page } = send(API_PAGE, await apiPage, headers);
    return { ...page, headers: { ...sent, "Content-Security-Policy": apiPagePolicy } };
  }

  function send(name: string, body: string | Uint8Array, headers: http.IncomingHttpHeaders): PageResponse {
    const etag = `"${createHash("sha256").update(body).digest("base64url")}"`;
    const type = pageTypes[name.split(".").at(-1) ?? ""] ?? "";
    const caching = { ETag: etag, "Cache-Control": pageCacheControl };
    if (headers["if-none-match"] === etag) return { status: 304, headers: caching, body: "" };
    return { status: 200, headers: { ...caching, "Content-Type": type }, body };
  }

  async function respond(path: string, request: http.IncomingMessage): Promise<PageResponse> {
    rejectForeignHosts(request);
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (path === `${CONSOLE}events`) {
      if (request.method !== "POST") throw notAllowed("POST");
      return sendEvent(request);
    }
    if (!isRead) throw notAllowed("GET, HEAD");
    if (path === DOCS) return serveApiPage(request);
    if (!path.startsWith(CONSOLE)) return { status: 302, headers: { Location: CONSOLE }, body: "" };
    return serveFile(path.slice(CONSOLE.length) || "index.html", request);
  }

  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    if (!isPage(path, request)) return false;
    void respond(path, request)
      .catch(errorResponse)
      .then(({ status, headers, body }) => {
        const security = { ...pageHeaders, "Content-Security-Policy": contentSecurityPolicy("") };
        response.writeHead(status, { ...security, ...headers }).end(request.method === "HEAD" ? undefined : body);
      });
    return true;
  };
}

interface PageResponse {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array;
}

/** At `/` a browser is redirected, and an API client gets the API's error. */
function isPage(path: string, { method, headers }: http.IncomingMessage): boolean {
  const isBrowser = (method === "GET" || method === "HEAD") && (headers.accept ?? "").includes("text/html");
  return path === DOCS || path === "/console" || path.startsWith(CONSOLE) || (path === "/" && isBrowser);
}

/** Loads esbuild only now, so that the service starts without it. */
async function bundle(): Promise<Map<string, Uint8Array>> {
  const { buildConsole } = await import("../../packages/console/build.ts");
  const files: PageFile[] = await buildConsole();
  return new Map(files.map(({ name, body }) => [name, body]));
}

const renderApiPage = async (): Promise<string> => (await import("../../contract/page.ts")).apiPage();

/**
 * Rejects requests to any other host name. A foreign page can point its own name at this machine's address (DNS rebinding)
 * and would then share an origin with the console; its requests carry that name.
 * @throws ApiError `forbidden`
 */
function rejectForeignHosts({ headers: { host = "" } }: http.IncomingMessage): void {
  if (/^(127\.0\.0\.1|localhost)(:\d+)?$/i.test(host)) return;
  throw new ApiError("forbidden", "These pages are only for this machine. Open them at 127.0.0.1 or localhost.");
}

const MAX_EVENT_BYTES = 4096;

/**
 * Handles POST /console/events `{project_id, event, data}`: puts a sample event, with further fields of `data`, on the queue, as `npm run event` does.
 * @throws ApiError `forbidden` unless the console's own page sent the request, `invalid_json`, `validation_error` or
 * `payload_too_large`
 */
async function sendEvent(request: http.IncomingMessage): Promise<PageResponse> {
  const { origin, host, "x-console": mark, "sec-fetch-site": site = "same-origin" } = request.headers;
  // A form cannot send this header, and a script of another page would need a preflight, which is never granted here.
  const isOwnPage = origin === `http://${host}` && site === "same-origin" && mark === "1";
  if (!isOwnPage)
    throw new ApiError("forbidden", "Only the console can send events here. Elsewhere, use npm run event.");
  const { project_id, event, data = {} } = await readJson(request);
  const now = new Date();
  const sample = sampleFields(String(event), { projectId: project_id, id: randomUUID(), now }, data);
  const read = parseDeploymentEvent(JSON.stringify(sample), now);
  if (!read.ok) throw new ApiError("validation_error", `This is not a deployment event: ${read.reason}.`);
  await sendToQueue(queueUrl("events"), sample);
  const { deployment_id } = sample;
  return { status: 202, headers: apiHeaders(), body: JSON.stringify({ data: { deployment_id } }) };
}

// biome-ignore lint/suspicious/noExplicitAny: the event that it becomes is validated
async function readJson(request: http.IncomingMessage): Promise<any> {
  const text = await readBody(request, MAX_EVENT_BYTES);
  if (text === undefined) {
    throw new ApiError("payload_too_large", `The body is too large. Send at most ${MAX_EVENT_BYTES} bytes.`);
  }
  try {
    return Object(JSON.parse(text));
  } catch (cause) {
    throw new ApiError("invalid_json", "The body is not valid JSON.", { cause });
  }
}

const notAllowed = (allow: string) =>
  new ApiError(
    "method_not_allowed",
    "This path does not support that method. The Allow header lists the supported ones.",
    { headers: { Allow: allow } },
  );

const apiHeaders = () => ({
  ...securityHeaders,
  "Content-Type": "application/json",
  "x-request-id": randomUUID(),
});

/** Renders an error in the shape of the API's errors, which the console shows. */
function errorResponse(thrown: unknown): PageResponse {
  if (!(thrown instanceof ApiError)) logSink.write("error", { message: `a page failed: ${String(thrown)}` });
  const error =
    thrown instanceof ApiError
      ? thrown
      : new ApiError("internal_error", "The page could not be served. See the log of the service.");
  const headers = apiHeaders();
  return {
    status: error.status,
    headers: { ...headers, ...error.headers },
    body: error.toBody(headers["x-request-id"]),
  };
}
