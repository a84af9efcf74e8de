import createHttp from "openapi-fetch";
import { ApiError, NetworkError } from "./errors.ts";
import type { components, operations, paths } from "./schema.d.ts";

/*
 * The API for programs, typed by what is generated from the endpoints: one method for each operation, by its operationId.
 * Runs in Node and in browsers.
 */

type Schemas = components["schemas"];
export type ApiKey = Schemas["ApiKey"];
export type Attempt = Schemas["Attempt"];
export type CreatedApiKey = Schemas["CreatedApiKey"];
export type CreatedWebhook = Schemas["CreatedWebhook"];
export type Delivery = Schemas["Delivery"];
export type DeliveryStatus = Delivery["status"];
export type DeliveryWithAttempts = Schemas["DeliveryWithAttempts"];
export type EventName = Schemas["EventName"];
export type Project = Schemas["Project"];
export type RotatedWebhook = Schemas["RotatedWebhook"];
export type Webhook = Schemas["Webhook"];
export type WebhookInList = Schemas["WebhookInList"];

/** Where a webhook is. */
export interface WebhookPlace {
  projectId: string;
  webhookId: string;
}

export interface DeliveryPage {
  items: Delivery[];
  /** Absent on the last page. */
  nextCursor?: string;
}

export interface ClientOptions {
  /** Where the API is, its stage included: `https://….amazonaws.com/prod`. */
  baseUrl: string;
  /** A JWT or an API key. */
  token: string;
  /** How often a request that was answered 429 or 503 is sent again. */
  maxRetries?: number;
  /** Longer than this it is not waited, whatever `Retry-After` says: the error is thrown then. */
  maxWaitSeconds?: number;
  /** How long one request may take, its answer read. */
  timeoutSeconds?: number;
  /** Ends requests and waits: what is under way throws its reason. */
  signal?: AbortSignal;
  /**
   * Decides whether a request is repeated after a 429 or a 503. Default: every request after a 429, all but POST after a 503
   * (it may have been processed).
   */
  mayRetry?: (response: { method: string; status: number }) => boolean;
  /** Called before each wait for a retry, with the length of the wait in seconds. */
  onWait?: (seconds: number) => void;
  /** Reads the JSON of answers, for those who want its numbers exact. */
  parseJson?: (text: string) => unknown;
  /** Is told of every answer, those that are asked again included. */
  onAnswer?: (answer: { method: string; url: string; status: number; requestId: string | undefined }) => void;
  fetch?: typeof fetch;
}

type BodyOf<Id extends keyof operations> = operations[Id] extends {
  requestBody?: { content: { "application/json": infer Body } };
}
  ? Body
  : never;
type DeliveryQuery = NonNullable<operations["listDeliveries"]["parameters"]["query"]>;

export type Client = ReturnType<typeof createClient>;

/** All methods throw ApiError for a refusal and NetworkError for no answer. */
export function createClient(options: ClientOptions) {
  const { baseUrl, token, parseJson = JSON.parse } = options;
  const bodies = new WeakMap<Response, unknown>();
  const http = createHttp<paths>({
    baseUrl: baseUrl.replace(/\/$/, ""),
    headers: { Authorization: `Bearer ${token}` },
    async fetch(request) {
      const { status, headers, text } = await send(request, options);
      const response = new Response(status === 204 ? null : text, { status, headers });
      if (status !== 204) bodies.set(response, readBody(text, parseJson, request));
      return response;
    },
  });

  /** The record of an answer. Refusals are thrown before. */
  async function data<Data>(answer: Promise<{ data?: { data: Data }; response: Response }>): Promise<Data> {
    return (bodies.get((await answer).response) as { data: Data }).data;
  }

  const at = ({ projectId, webhookId }: WebhookPlace) => ({ project_id: projectId, webhook_id: webhookId });
  const inProject = (projectId: string) => ({ params: { path: { project_id: projectId } } });
  const ofWebhook = (place: WebhookPlace) => ({ params: { path: at(place) } });
  const ofDelivery = (place: WebhookPlace, id: string) => ({ params: { path: { ...at(place), delivery_id: id } } });

  const webhooks = "/v1/projects/{project_id}/webhooks";
  const webhook = `${webhooks}/{webhook_id}` as const;
  const deliveries = `${webhook}/deliveries` as const;
  const delivery = `${deliveries}/{delivery_id}` as const;

  const client = {
    createApiKey: (body: BodyOf<"createApiKey">) => data(http.POST("/v1/api-keys", { body })),
    listApiKeys: () => data(http.GET("/v1/api-keys")),
    deleteApiKey: async (id: string) => void (await http.DELETE("/v1/api-keys/{id}", { params: { path: { id } } })),

    listProjects: () => data(http.GET("/v1/projects")),

    createWebhook: (projectId: string, body: BodyOf<"createWebhook">) =>
      data(http.POST(webhooks, { ...inProject(projectId), body })),
    listWebhooks: (projectId: string) => data(http.GET(webhooks, inProject(projectId))),
    getWebhook: (place: WebhookPlace) => data(http.GET(webhook, ofWebhook(place))),
    updateWebhook: (place: WebhookPlace, body: BodyOf<"updateWebhook">) =>
      data(http.PATCH(webhook, { ...ofWebhook(place), body })),
    deleteWebhook: async (place: WebhookPlace) => void (await http.DELETE(webhook, ofWebhook(place))),
    rotateWebhookSecret: (place: WebhookPlace, body: BodyOf<"rotateWebhookSecret"> = {}) =>
      data(http.POST(`${webhook}/rotate-secret`, { ...ofWebhook(place), body })),

    sendTestDelivery: (place: WebhookPlace, body: BodyOf<"sendTestDelivery"> = {}) =>
      data(http.POST(`${webhook}/test`, { ...ofWebhook(place), body })),
    async listDeliveries(place: WebhookPlace, query: DeliveryQuery = {}): Promise<DeliveryPage> {
      const answer = http.GET(deliveries, { params: { path: at(place), query } });
      const items = await data(answer);
      const nextCursor = nextCursorOf((await answer).response.headers);
      return nextCursor === undefined ? { items } : { items, nextCursor };
    },
    /** All deliveries that fit, newest first, page by page as they are taken. */
    async *eachDelivery(place: WebhookPlace, query: DeliveryQuery = {}): AsyncGenerator<Delivery, void, void> {
      let cursor = query.cursor;
      do {
        const page = await client.listDeliveries(place, { ...query, ...(cursor !== undefined && { cursor }) });
        yield* page.items;
        cursor = page.nextCursor;
      } while (cursor !== undefined);
    },
    getDelivery: (place: WebhookPlace, id: string) => data(http.GET(delivery, ofDelivery(place, id))),
    redeliver: (place: WebhookPlace, id: string) => data(http.POST(`${delivery}/redeliver`, ofDelivery(place, id))),
    recoverDeliveries: (place: WebhookPlace, body: BodyOf<"recoverDeliveries">) =>
      data(http.POST(`${webhook}/recover`, { ...ofWebhook(place), body })),
  };
  return client;
}

/** Of the link only the cursor is taken: where the credential goes is not for an answer to say. */
function nextCursorOf(headers: Headers): string | undefined {
  const url = /<([^>]+)>; *rel="next"/.exec(headers.get("link") ?? "")?.[1];
  return url !== undefined && URL.canParse(url) ? (new URL(url).searchParams.get("cursor") ?? undefined) : undefined;
}

function readBody(text: string, parseJson: (text: string) => unknown, { method, url }: Request): unknown {
  try {
    const body = parseJson(text);
    if (typeof body === "object" && body !== null && "data" in body) return body;
  } catch (cause) {
    throw new NetworkError(`${method} ${url} was answered with what is not JSON.`, { cause });
  }
  throw new NetworkError(`${method} ${url} was answered with what is not from this API.`);
}

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

const DEFAULT_MAX_RETRIES = 4;
const DEFAULT_MAX_WAIT_SECONDS = 30;
/** API Gateway gives an endpoint 29. */
const DEFAULT_TIMEOUT_SECONDS = 35;

/** Sends a request, again when it is asked to wait. @throws ApiError or NetworkError unless it is answered 2xx */
async function send(request: Request, options: ClientOptions): Promise<Answer> {
  const { maxRetries = DEFAULT_MAX_RETRIES, maxWaitSeconds = DEFAULT_MAX_WAIT_SECONDS, signal } = options;
  const { mayRetry = mayRetryByDefault, onWait } = options;
  let mayHaveHappened = false;
  for (let retries = 0; ; retries++) {
    const answer = await once(request, options);
    const { status } = answer;
    if (status >= 200 && status < 300) return answer;
    const error = ApiError.of(answer);
    // What a delete that seemed to fail has done is done.
    if (status === 404 && error && mayHaveHappened && request.method === "DELETE") {
      return { ...answer, status: 204, text: "" };
    }
    if (!error) throw new NetworkError(`${request.method} ${request.url} was answered ${status}, and not by this API.`);
    const isRetryable = (status === 429 || status === 503) && mayRetry({ method: request.method, status });
    const leastSeconds = Math.max(error.retryAfterSeconds ?? 0, 2 ** retries);
    if (!isRetryable || retries === maxRetries || leastSeconds > maxWaitSeconds) throw error;
    mayHaveHappened ||= status === 503;
    const waitSeconds = Math.min(withJitter(leastSeconds, Math.random()), maxWaitSeconds);
    onWait?.(waitSeconds);
    await wait(waitSeconds, signal);
  }
}

/** A 429 rejects a request before it is processed. A request that got a 503 may have been processed. */
const mayRetryByDefault = ({ method, status }: { method: string; status: number }) =>
  status === 429 || method !== "POST";

/** Adds up to half of the wait, so that clients do not retry at the same moment. */
const withJitter = (seconds: number, random: number) => seconds * (1 + random / 2);

async function once(request: Request, { fetch: ask = fetch, onAnswer, ...options }: ClientOptions): Promise<Answer> {
  const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, signal: stop } = options;
  const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
  const signal = stop ? AbortSignal.any([stop, deadline]) : deadline;
  try {
    const response = await ask(request.clone(), { signal, redirect: "manual" });
    const text = await response.text();
    const { status, headers } = response;
    onAnswer?.({
      method: request.method,
      url: request.url,
      status,
      requestId: headers.get("x-request-id") ?? undefined,
    });
    return { status, headers, text };
  } catch (error) {
    stop?.throwIfAborted();
    throw NetworkError.of(error, new URL(request.url).origin, timeoutSeconds);
  }
}

function wait(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}
