import createHttp from "openapi-fetch";
import { ApiError, NetworkError } from "./errors.ts";
import type { components, operations, paths } from "./schema.d.ts";

/*
 * A client for the API. A method is named by the operationId of its operation. Its types are generated from the OpenAPI
 * document. Runs in Node and in browsers.
 */

type Schemas = components["schemas"];
export type ApiKey = Schemas["ApiKey"];
export type AuditEvent = Schemas["AuditEvent"];
export type Attempt = Schemas["Attempt"];
export type Certification = Schemas["Certification"];
export type CreatedApiKey = Schemas["CreatedApiKey"];
export type CreatedWebhook = Schemas["CreatedWebhook"];
export type Delivery = Schemas["Delivery"];
export type DeliveryErrorCode = NonNullable<Attempt["error_code"]>;
export type DeliveryStatus = Delivery["status"];
export type DeliveryWithAttempts = Schemas["DeliveryWithAttempts"];
export type DeploymentEvent = Schemas["DeploymentEvent"];
export type EventName = Schemas["EventName"];
export type WebhookEventName = Schemas["WebhookEventName"];
export type Project = Schemas["Project"];
export type Recovered = Schemas["Recovered"];
export type RotatedWebhook = Schemas["RotatedWebhook"];
export type StatsWindow = WebhookStats["window"];
export type TrustedWorkflow = Schemas["TrustedWorkflow"];
export type WorkflowPermission = TrustedWorkflow["permissions"][number];
export type Webhook = Schemas["Webhook"];
export type WebhookHealth = Schemas["WebhookHealth"];
export type WebhookInList = Schemas["WebhookInList"];
export type WebhookStats = Schemas["WebhookStats"];

/** The body of a request for a new API key. */
export type CreateApiKey = BodyOf<"createApiKey">;
export type Permission = NonNullable<ApiKey["permissions"]>[number];

/** What the credential of a request may do. */
export type CurrentCredential =
  operations["getCurrentCredential"]["responses"][200]["content"]["application/json"]["data"];

/** Identifies a service account. */
export interface ServiceAccountRef {
  projectId: string;
  serviceAccountId: string;
}

/** Identifies a webhook. */
export interface WebhookRef {
  projectId: string;
  webhookId: string;
}

/** Options of the methods that create something. */
export interface CreateOptions {
  /**
   * A value of your own, 1 to 255 ASCII characters without spaces, that makes it safe to repeat the call: for 24 hours, a
   * repeat creates nothing. It returns the same record, or throws an ApiError `already_created` with the id in its details
   * if the record has a secret, which is returned only once. The call is then retried after a 503 too. Default: none.
   */
  idempotencyKey?: string;
}

interface Page<Item> {
  items: Item[];
  /** Absent on the last page. A page may be empty although more follow. */
  nextCursor?: string;
}

export type DeliveryPage = Page<Delivery>;
export type AuditPage = Page<AuditEvent>;

/** `nextCursor` is the `after` of the next page. */
export interface EventPage extends Page<DeploymentEvent> {
  /** The `after` with which to follow the feed, with `order: "oldest"`; on the first or the last page. */
  followCursor?: string;
}

/** Events of the feed that are new to its reader, oldest first. */
export interface FollowedEvents {
  items: DeploymentEvent[];
  /** Where to continue after an error: the `after` of the next call. */
  cursor: string;
}

export interface FollowOptions {
  /** The pause after new events. It grows while there are none. Default: 1. */
  minPauseSeconds?: number;
  /** The longest pause. Default: 10. */
  maxPauseSeconds?: number;
  /** Called after each successful request. */
  onPoll?: () => void;
}

export interface ClientOptions {
  /** The base URL of the API, including the stage: `https://….amazonaws.com/prod`. */
  baseUrl: string;
  /** A JWT or an API key. Absent = only methods that need no credential succeed. */
  token?: string;
  /** Upper bound on retries of a request after a 429 or a 503. Default: 4. */
  maxRetries?: number;
  /** Upper bound on the wait before a retry. A longer `Retry-After` throws the error without a retry. Default: 30. */
  maxWaitSeconds?: number;
  /** Timeout of one request, until its response is read. Default: 35. */
  timeoutSeconds?: number;
  /** Aborts requests and waits: the methods throw its reason. */
  signal?: AbortSignal;
  /**
   * Decides whether a request is retried after a 429 or a 503. Default: every request after a 429, and after a 503 all but a
   * POST without an `idempotencyKey`, because the service may have processed it.
   */
  mayRetry?: (response: { method: string; status: number; isRepeatable: boolean }) => boolean;
  /** Called before each wait for a retry, with the length of the wait in seconds. */
  onWait?: (seconds: number) => void;
  /** Parses the JSON of responses. Default: JSON.parse, which rounds numbers that a double cannot hold. */
  parseJson?: (text: string) => unknown;
  /** Called with every response, including those that are retried. */
  onResponse?: (response: { method: string; url: string; status: number; requestId: string | undefined }) => void;
  fetch?: typeof fetch;
  /** Names the caller in audit logs. Default: that of the runtime. Browsers may ignore it. */
  userAgent?: string;
}

const IDEMPOTENCY_KEY = "Idempotency-Key";

type BodyOf<Id extends keyof operations> = operations[Id] extends {
  requestBody?: { content: { "application/json": infer Body } };
}
  ? Body
  : never;
type KeyQuery = NonNullable<operations["listApiKeys"]["parameters"]["query"]>;
export type DeliveryQuery = NonNullable<operations["listDeliveries"]["parameters"]["query"]>;
type StatsQuery = NonNullable<operations["getWebhookStats"]["parameters"]["query"]>;
type ProjectQuery = NonNullable<operations["listProjects"]["parameters"]["query"]>;
type AuditQuery = NonNullable<operations["listAuditEvents"]["parameters"]["query"]>;
type EventQuery = NonNullable<operations["listEvents"]["parameters"]["query"]>;

export type Client = ReturnType<typeof createClient>;

/**
 * Creates a client. Its methods throw ApiError when the API rejects a request, and NetworkError when there is no response of
 * the API.
 */
export function createClient(options: ClientOptions) {
  const { baseUrl, token, userAgent, parseJson = JSON.parse } = options;
  const bodies = new WeakMap<Response, unknown>();
  const http = createHttp<paths>({
    baseUrl: baseUrl.replace(/\/$/, ""),
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(userAgent !== undefined && { "User-Agent": userAgent }),
    },
    async fetch(request) {
      const { status, headers, text } = await send(request, options);
      const response = new Response(status === 204 ? null : text, { status, headers });
      if (status !== 204) bodies.set(response, readBody(text, parseJson, request));
      return response;
    },
  });

  /** Returns the `data` of a successful response, as `parseJson` returned it. `fetch` throws for any other response. */
  async function data<Data>(result: Promise<{ data?: { data: Data }; response: Response }>): Promise<Data> {
    return (bodies.get((await result).response) as { data: Data }).data;
  }

  /** Returns the items of a response, and the cursor of the next page; absent = this is the last one. */
  async function pageOf<Item>(result: Promise<{ data?: { data: Item[] }; response: Response }>): Promise<Page<Item>> {
    const items = await data(result);
    const nextCursor = linkedCursor((await result).response.headers, "next");
    return nextCursor === undefined ? { items } : { items, nextCursor };
  }

  /** Iterates over the items of all pages. @param cursor the start of the first page; undefined = the first one of the list */
  async function* eachItem<Item>(
    cursor: string | undefined,
    request: (query: { cursor?: string }) => Promise<{ data?: { data: Item[] }; response: Response }>,
  ): AsyncGenerator<Item, void, void> {
    let next = cursor;
    do {
      const { items, nextCursor } = await pageOf(request(next === undefined ? {} : { cursor: next }));
      yield* items;
      next = nextCursor;
    } while (next !== undefined);
  }

  /** The parameters of a path. */
  const at = <Path>(path: Path) => ({ params: { path } });
  const pathOf = ({ projectId, webhookId }: WebhookRef) => ({ project_id: projectId, webhook_id: webhookId });
  const inProject = (projectId: string) => at({ project_id: projectId });
  const ofWebhook = (webhook: WebhookRef) => at(pathOf(webhook));
  const ofDelivery = (webhook: WebhookRef, id: string) => at({ ...pathOf(webhook), delivery_id: id });
  const ofAccount = ({ projectId, serviceAccountId }: ServiceAccountRef) =>
    at({ project_id: projectId, service_account_id: serviceAccountId });
  const ofAccountKey = (account: ServiceAccountRef, id: string) => at({ ...ofAccount(account).params.path, id });

  const once = ({ idempotencyKey }: CreateOptions) =>
    idempotencyKey === undefined ? {} : { headers: { [IDEMPOTENCY_KEY]: idempotencyKey } };

  const accountsPath = "/v1/projects/{project_id}/service-accounts";
  const accountPath = `${accountsPath}/{service_account_id}` as const;
  const webhooksPath = "/v1/projects/{project_id}/webhooks";
  const webhookPath = `${webhooksPath}/{webhook_id}` as const;
  const deliveriesPath = `${webhookPath}/deliveries` as const;
  const deliveryPath = `${deliveriesPath}/{delivery_id}` as const;
  const workflowsPath = "/v1/projects/{project_id}/trusted-workflows";

  const inProjectWith = <Query>(projectId: string, query: Query) => ({
    params: { path: { project_id: projectId }, query },
  });
  const auditEvents = (query: AuditQuery) => http.GET("/v1/audit-events", { params: { query } });
  const projectAuditEvents = (projectId: string, query: AuditQuery) =>
    http.GET("/v1/projects/{project_id}/audit-events", inProjectWith(projectId, query));
  const events = (projectId: string, query: EventQuery) =>
    http.GET("/v1/projects/{project_id}/events", inProjectWith(projectId, query));
  const projectDeliveries = (projectId: string, query: DeliveryQuery) =>
    http.GET("/v1/projects/{project_id}/deliveries", inProjectWith(projectId, query));
  const deliveries = (webhook: WebhookRef, query: DeliveryQuery) =>
    http.GET(deliveriesPath, { params: { path: pathOf(webhook), query } });

  const client = {
    createApiKey: (body: BodyOf<"createApiKey">, create: CreateOptions = {}) =>
      data(http.POST("/v1/api-keys", { body, ...once(create) })),
    listApiKeys: (query: KeyQuery = {}) => data(http.GET("/v1/api-keys", { params: { query } })),
    getCurrentCredential: () => data(http.GET("/v1/api-keys/current")),
    updateApiKey: (id: string, body: BodyOf<"updateApiKey">) =>
      data(http.PATCH("/v1/api-keys/{id}", { ...at({ id }), body })),
    rollApiKey: (id: string, body: BodyOf<"rollApiKey"> = {}) =>
      data(http.POST("/v1/api-keys/{id}/roll", { ...at({ id }), body })),
    /** Needs no credential. */
    revokeCredentials: (body: BodyOf<"revokeCredentials">) => data(http.POST("/v1/credentials/revoke", { body })),
    deleteApiKey: async (id: string) => void (await http.DELETE("/v1/api-keys/{id}", at({ id }))),

    createServiceAccount: (projectId: string, body: BodyOf<"createServiceAccount">, create: CreateOptions = {}) =>
      data(http.POST(accountsPath, { ...inProject(projectId), body, ...once(create) })),
    /** Begins the sign-in of a machine, or asks for its key. */
    requestSignIn: (body: BodyOf<"requestSignIn">) => data(http.POST("/v1/sign-ins", { body })),
    decideSignIn: (body: BodyOf<"decideSignIn">) => data(http.PATCH("/v1/sign-ins", { body })),
    listMembers: (projectId: string) => data(http.GET("/v1/projects/{project_id}/members", inProject(projectId))),
    listServiceAccounts: (projectId: string) => data(http.GET(accountsPath, inProject(projectId))),
    /** Deletes its keys too. */
    deleteServiceAccount: async (account: ServiceAccountRef) =>
      void (await http.DELETE(accountPath, ofAccount(account))),
    createServiceAccountApiKey: (account: ServiceAccountRef, body: CreateApiKey, create: CreateOptions = {}) =>
      data(http.POST(`${accountPath}/api-keys`, { ...ofAccount(account), body, ...once(create) })),
    listServiceAccountApiKeys: (account: ServiceAccountRef, query: KeyQuery = {}) =>
      data(http.GET(`${accountPath}/api-keys`, { params: { ...ofAccount(account).params, query } })),
    updateServiceAccountApiKey: (account: ServiceAccountRef, id: string, body: BodyOf<"updateServiceAccountApiKey">) =>
      data(http.PATCH(`${accountPath}/api-keys/{id}`, { ...ofAccountKey(account, id), body })),
    rollServiceAccountApiKey: (account: ServiceAccountRef, id: string, body: BodyOf<"rollServiceAccountApiKey"> = {}) =>
      data(http.POST(`${accountPath}/api-keys/{id}/roll`, { ...ofAccountKey(account, id), body })),
    deleteServiceAccountApiKey: async (account: ServiceAccountRef, id: string) =>
      void (await http.DELETE(`${accountPath}/api-keys/{id}`, ofAccountKey(account, id))),

    createTrustedWorkflow: (projectId: string, body: BodyOf<"createTrustedWorkflow">, create: CreateOptions = {}) =>
      data(http.POST(workflowsPath, { ...inProject(projectId), body, ...once(create) })),
    listTrustedWorkflows: (projectId: string) => data(http.GET(workflowsPath, inProject(projectId))),
    deleteTrustedWorkflow: async (projectId: string, id: string) => {
      const path = at({ project_id: projectId, trusted_workflow_id: id });
      await http.DELETE(`${workflowsPath}/{trusted_workflow_id}`, path);
    },

    /** Returns one page of what was done to the caller's keys, newest first. */
    listAuditEvents: (query: AuditQuery = {}): Promise<AuditPage> => pageOf(auditEvents(query)),
    /** Iterates over what was done to the caller's keys, newest first. Requests each page when it is needed. */
    eachAuditEvent: (query: AuditQuery = {}) =>
      eachItem(query.cursor, (cursor) => auditEvents({ ...query, ...cursor })),
    /** Returns one page of what was done in a project, newest first. */
    listProjectAuditEvents: (projectId: string, query: AuditQuery = {}): Promise<AuditPage> =>
      pageOf(projectAuditEvents(projectId, query)),
    /** Iterates over what was done in a project, newest first. Requests each page when it is needed. */
    eachProjectAuditEvent: (projectId: string, query: AuditQuery = {}) =>
      eachItem(query.cursor, (cursor) => projectAuditEvents(projectId, { ...query, ...cursor })),

    /** Returns all projects of the caller, by the time of joining. Requests as many pages as there are. */
    async listProjects(): Promise<Project[]> {
      const projects: Project[] = [];
      for await (const project of client.eachProject()) projects.push(project);
      return projects.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
    },
    /** Iterates over the projects of the caller, in the order of their ids. Requests each page when it is needed. */
    eachProject: (query: ProjectQuery = {}) =>
      eachItem(query.cursor, (cursor) => http.GET("/v1/projects", { params: { query: { ...query, ...cursor } } })),

    /** Returns one page. */
    async listEvents(projectId: string, query: EventQuery = {}): Promise<EventPage> {
      const result = events(projectId, query);
      const followCursor = linkedCursor((await result).response.headers, "monitor");
      return { ...(await pageOf(result)), ...(followCursor !== undefined && { followCursor }) };
    },
    /** Iterates over all matching events, newest first unless `order` is set. Requests each page when it is needed. */
    eachEvent: (projectId: string, query: EventQuery = {}) =>
      eachItem(query.after, ({ cursor }) =>
        events(projectId, { ...query, ...(cursor !== undefined && { after: cursor }) }),
      ),
    /**
     * Follows the feed by polling, and yields each event at least once, also one that arrives late. Ends only when it
     * throws; `signal` of the client ends it.
     * @param query `after` is a `followCursor` or a `cursor`; absent = from now on
     */
    async *followEvents(
      projectId: string,
      query: Omit<EventQuery, "order"> = {},
      { minPauseSeconds = 1, maxPauseSeconds = 10, onPoll }: FollowOptions = {},
    ): AsyncGenerator<FollowedEvents, void, void> {
      let cursor = query.after ?? (await client.listEvents(projectId, { ...query, limit: 1 })).followCursor;
      if (cursor === undefined) throw new NetworkError(`${baseUrl} returned no link with which to follow the events.`);
      let pauseSeconds = minPauseSeconds;
      for (;;) {
        const page: EventPage = await client.listEvents(projectId, { ...query, order: "oldest", after: cursor });
        onPoll?.();
        cursor = page.nextCursor ?? page.followCursor ?? cursor;
        if (page.items.length > 0) yield { items: page.items, cursor };
        if (page.nextCursor !== undefined) continue;
        pauseSeconds = page.items.length > 0 ? minPauseSeconds : Math.min(pauseSeconds * 1.3, maxPauseSeconds);
        await wait(pauseSeconds, options.signal);
      }
    },

    createWebhook: (projectId: string, body: BodyOf<"createWebhook">, create: CreateOptions = {}) =>
      data(http.POST(webhooksPath, { ...inProject(projectId), body, ...once(create) })),
    listWebhooks: (projectId: string) => data(http.GET(webhooksPath, inProject(projectId))),
    getWebhook: (webhook: WebhookRef) => data(http.GET(webhookPath, ofWebhook(webhook))),
    updateWebhook: (webhook: WebhookRef, body: BodyOf<"updateWebhook">) =>
      data(http.PATCH(webhookPath, { ...ofWebhook(webhook), body })),
    deleteWebhook: async (webhook: WebhookRef) => void (await http.DELETE(webhookPath, ofWebhook(webhook))),
    rotateWebhookSecret: (webhook: WebhookRef, body: BodyOf<"rotateWebhookSecret"> = {}) =>
      data(http.POST(`${webhookPath}/rotate-secret`, { ...ofWebhook(webhook), body })),
    /** Returns success rate and response times of the last 24 hours or 7 days. See `complete` in its result. */
    getWebhookStats: (webhook: WebhookRef, query: StatsQuery = {}) =>
      data(http.GET(`${webhookPath}/stats`, { params: { path: pathOf(webhook), query } })),

    sendTestDelivery: (webhook: WebhookRef, body: BodyOf<"sendTestDelivery"> = {}) =>
      data(http.POST(`${webhookPath}/test`, { ...ofWebhook(webhook), body })),
    /** Starts a certification: `getCertification` returns its report when `status` is no longer `running`. */
    certifyWebhook: (webhook: WebhookRef) => data(http.POST(`${webhookPath}/certify`, ofWebhook(webhook))),
    getCertification: (webhook: WebhookRef, id: string) =>
      data(
        http.GET(`${webhookPath}/certifications/{certification_id}`, at({ ...pathOf(webhook), certification_id: id })),
      ),

    /** Returns one page. */
    listDeliveries: (webhook: WebhookRef, query: DeliveryQuery = {}): Promise<DeliveryPage> =>
      pageOf(deliveries(webhook, query)),
    /** Iterates over the deliveries, newest first. Requests each page when it is needed. */
    eachDelivery: (webhook: WebhookRef, query: DeliveryQuery = {}) =>
      eachItem(query.cursor, (cursor) => deliveries(webhook, { ...query, ...cursor })),
    /** Returns one page of the deliveries of all webhooks of a project. */
    listProjectDeliveries: (projectId: string, query: DeliveryQuery = {}): Promise<DeliveryPage> =>
      pageOf(projectDeliveries(projectId, query)),
    /** Iterates over the deliveries of all webhooks of a project, newest first. Requests each page when it is needed. */
    eachProjectDelivery: (projectId: string, query: DeliveryQuery = {}) =>
      eachItem(query.cursor, (cursor) => projectDeliveries(projectId, { ...query, ...cursor })),
    getDelivery: (webhook: WebhookRef, id: string) => data(http.GET(deliveryPath, ofDelivery(webhook, id))),
    redeliver: (webhook: WebhookRef, id: string) =>
      data(http.POST(`${deliveryPath}/redeliver`, ofDelivery(webhook, id))),
    /** Makes one call, which may end before the newest delivery: see `complete` in its result. */
    recoverDeliveries: (webhook: WebhookRef, body: BodyOf<"recoverDeliveries">) =>
      data(http.POST(`${webhookPath}/recover`, { ...ofWebhook(webhook), body })),
    /**
     * Recovers all matching deliveries, oldest first, and returns the result of each call. Makes the next call when its
     * result is needed. To continue after an error, pass the last `next_cursor` as `cursor`.
     */
    async *eachRecovery(webhook: WebhookRef, body: BodyOf<"recoverDeliveries">): AsyncGenerator<Recovered, void, void> {
      let { cursor } = body;
      do {
        const result: Recovered = await client.recoverDeliveries(webhook, {
          ...body,
          ...(cursor !== undefined && { cursor }),
        });
        yield result;
        // A service of an earlier version returns no cursor.
        cursor = result.next_cursor ?? undefined;
      } while (cursor !== undefined);
    },
  };
  return client;
}

/** Reads only the cursor of a link, so that a response cannot send the credential to another URL. */
function linkedCursor(headers: Headers, rel: "next" | "monitor"): string | undefined {
  const url = new RegExp(`<([^<>]+)>; *rel="${rel}"`).exec(headers.get("link") ?? "")?.[1];
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { searchParams } = new URL(url);
  return searchParams.get("after") ?? searchParams.get("cursor") ?? undefined;
}

function readBody(text: string, parseJson: (text: string) => unknown, { method, url }: Request): unknown {
  try {
    const body = parseJson(text);
    if ("data" in Object(body)) return body;
  } catch (cause) {
    throw new NetworkError(`${method} ${url} returned a response that is not JSON.`, { cause });
  }
  throw new NetworkError(`${method} ${url} returned a response that is not from this API.`);
}

interface RawResponse {
  status: number;
  headers: Headers;
  text: string;
}

const DEFAULT_MAX_RETRIES = 4;
const DEFAULT_MAX_WAIT_SECONDS = 30;
/** API Gateway responds after 29 seconds at the latest. */
const DEFAULT_TIMEOUT_SECONDS = 35;

/** Sends a request, with retries. @throws ApiError or NetworkError unless the status of the response is 2xx */
async function send(request: Request, options: ClientOptions): Promise<RawResponse> {
  const { maxRetries = DEFAULT_MAX_RETRIES, maxWaitSeconds = DEFAULT_MAX_WAIT_SECONDS, signal } = options;
  const { mayRetry = mayRetryByDefault, onWait } = options;
  let mayBeProcessed = false;
  for (let retries = 0; ; retries++) {
    const response = await sendOnce(request, options);
    const { status } = response;
    if (status >= 200 && status < 300) return response;
    const error = ApiError.of(response);
    // An earlier try that got a 503 has deleted it.
    if (status === 404 && error && mayBeProcessed && request.method === "DELETE") {
      return { ...response, status: 204, text: "" };
    }
    if (!error)
      throw new NetworkError(
        `${request.method} ${request.url} returned ${status}, and the response is not from this API.`,
      );
    const isRepeatable = request.method !== "POST" || request.headers.has(IDEMPOTENCY_KEY);
    const isRetryable =
      (status === 429 || status === 503) && mayRetry({ method: request.method, status, isRepeatable });
    const minSeconds = Math.max(error.retryAfterSeconds ?? 0, 2 ** retries);
    if (!isRetryable || retries === maxRetries || minSeconds > maxWaitSeconds) throw error;
    mayBeProcessed ||= status === 503;
    const waitSeconds = Math.min(withJitter(minSeconds, Math.random()), maxWaitSeconds);
    onWait?.(waitSeconds);
    await wait(waitSeconds, signal);
  }
}

/** A 429 rejects a request before it is processed. A request that got a 503 may have been processed. */
const mayRetryByDefault = ({ status, isRepeatable }: { status: number; isRepeatable: boolean }) =>
  status === 429 || isRepeatable;

/** Adds up to half of the wait, so that clients do not retry at the same moment. */
const withJitter = (seconds: number, random: number) => seconds * (1 + random / 2);

/** Does not follow redirects: the credential is sent only to `baseUrl`. */
async function sendOnce(request: Request, options: ClientOptions): Promise<RawResponse> {
  const { fetch: send = fetch, onResponse, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, signal: stop } = options;
  const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
  const signal = stop ? AbortSignal.any([stop, deadline]) : deadline;
  try {
    const response = await send(request.clone(), { signal, redirect: "manual" });
    const text = await response.text();
    const { status, headers } = response;
    onResponse?.({
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

/** @throws the reason of the signal when it is aborted */
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
