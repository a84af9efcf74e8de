import { nextCursorOf, type Page } from "./delivery-pages.ts";
import type {
  ApiKey,
  Delivery,
  DeliveryStatus,
  DeliveryWithAttempts,
  EventName,
  NewApiKey,
  Project,
  Webhook,
  WebhookWithSecret,
} from "./records.ts";

/*
 * The API, one method per endpoint that the console uses. What is refused is thrown as it was told; what asks to wait is
 * waited for.
 */

/** The API, or something before it, said no. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  /** Of the API's closed set, or `http_<status>` when the answer is none of its. */
  readonly code: string;
  readonly requestId: string | undefined;
  /** Which fields are wrong, and how. */
  readonly details: { path: string; message: string }[];
  /** How long to wait, when it says so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(response: Response, body: unknown) {
    const told = (
      body as { error?: { code?: string; message?: string; request_id?: string; details?: [] } } | undefined
    )?.error;
    super(told?.message ?? `The answer was ${response.status}, and not in the shape of this API.`);
    this.status = response.status;
    this.code = told?.code ?? `http_${response.status}`;
    this.requestId = told?.request_id ?? response.headers.get("x-request-id") ?? undefined;
    this.details = told?.details ?? [];
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    this.retryAfterSeconds = seconds >= 0 ? seconds : undefined;
  }
}

/** No answer came at all. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";

  constructor(cause: unknown) {
    const why = navigator.onLine ? "The service does not answer." : "This device is offline.";
    super(why, { cause });
  }
}

/** Longer than this nobody waits before a page; then the refusal is shown, with its time. */
const MAX_WAIT_SECONDS = 60;
const MAX_TRIES = 4;

interface Options {
  /** Where the API is, without a trailing slash; empty when it is where the page is. */
  baseUrl: string;
  token: string;
  /** Is told how long it takes until a request goes out again. */
  onWait(seconds: number): void;
}

interface Request {
  body?: unknown;
  signal?: AbortSignal | undefined;
}

export class Api {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  keys = (signal?: AbortSignal) => this.#data<ApiKey[]>("GET", "/v1/api-keys", { signal });
  createKey = (name: string) => this.#data<NewApiKey>("POST", "/v1/api-keys", { body: { name } });
  revokeKey = (id: string) => this.#data<void>("DELETE", `/v1/api-keys/${id}`);

  projects = (signal?: AbortSignal) => this.#data<Project[]>("GET", "/v1/projects", { signal });

  webhooks = (project: string, signal?: AbortSignal) => this.#data<Webhook[]>("GET", webhooksOf(project), { signal });
  webhook = (path: WebhookPath, signal?: AbortSignal) => this.#data<Webhook>("GET", pathOf(path), { signal });
  createWebhook = (project: string, body: { url: string; events: EventName[] }) =>
    this.#data<WebhookWithSecret>("POST", webhooksOf(project), { body });
  updateWebhook = (path: WebhookPath, body: { url?: string; events?: EventName[]; enabled?: boolean }) =>
    this.#data<Webhook>("PATCH", pathOf(path), { body });
  deleteWebhook = (path: WebhookPath) => this.#data<void>("DELETE", pathOf(path));
  rotateSecret = (path: WebhookPath, overlap_seconds: number) =>
    this.#data<WebhookWithSecret>("POST", `${pathOf(path)}/rotate-secret`, { body: { overlap_seconds } });
  sendTest = (path: WebhookPath, event: EventName) =>
    this.#data<Delivery>("POST", `${pathOf(path)}/test`, { body: { event } });

  /** @param cursor of the page before, absent for the newest */
  async deliveries(
    path: WebhookPath,
    { status, limit, cursor }: { status?: DeliveryStatus | undefined; limit: number; cursor?: string | undefined },
    signal?: AbortSignal,
  ): Promise<Page<Delivery>> {
    const query = new URLSearchParams({ limit: String(limit), ...(status && { status }), ...(cursor && { cursor }) });
    const { response, body } = await this.#send("GET", `${pathOf(path)}/deliveries?${query}`, { signal });
    const { data } = body as { data: Delivery[] };
    return { items: data, nextCursor: nextCursorOf(response.headers.get("link")) };
  }

  delivery = (path: WebhookPath, id: string, signal?: AbortSignal) =>
    this.#data<DeliveryWithAttempts>("GET", `${pathOf(path)}/deliveries/${id}`, { signal });
  redeliver = (path: WebhookPath, id: string) =>
    this.#data<Delivery>("POST", `${pathOf(path)}/deliveries/${id}/redeliver`);
  recover = (path: WebhookPath, body: { since: string; status?: "failed" | "held" }) =>
    this.#data<{ count: number }>("POST", `${pathOf(path)}/recover`, { body });

  async #data<Data>(method: string, path: string, request: Request = {}): Promise<Data> {
    const { body } = await this.#send(method, path, request);
    return (body as { data: Data } | undefined)?.data as Data;
  }

  /** @throws Refusal or Unreachable */
  async #send(method: string, path: string, request: Request): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        const { baseUrl, token } = this.#options;
        return await send(`${baseUrl}${path}`, method, { Authorization: `Bearer ${token}` }, request);
      } catch (error) {
        const seconds = error instanceof Refusal ? waitBeforeAgain(error, method) : undefined;
        if (seconds === undefined || tries === MAX_TRIES) throw error;
        this.#options.onWait(seconds);
        await waitFor(seconds, request.signal);
      }
    }
  }
}

/** Puts a deployment event on the queue of a local run. On AWS there is no such address. */
export async function sendDeploymentEvent(project_id: string, event: EventName): Promise<{ deployment_id: string }> {
  const { body } = await send("events", "POST", { "X-Console": "1" }, { body: { project_id, event } });
  return (body as { data: { deployment_id: string } }).data;
}

export interface WebhookPath {
  projectId: string;
  webhookId: string;
}

const webhooksOf = (project: string) => `/v1/projects/${project}/webhooks`;
const pathOf = ({ projectId, webhookId }: WebhookPath) => `${webhooksOf(projectId)}/${webhookId}`;

/**
 * Seconds until a refused request may be sent again; undefined when that is not asked for. A 429 was refused before anything
 * was done; after a 503 only reading is safe to repeat.
 */
function waitBeforeAgain({ status, retryAfterSeconds }: Refusal, method: string): number | undefined {
  const mayRepeat = status === 429 || (status === 503 && method === "GET");
  if (!mayRepeat || retryAfterSeconds === undefined || retryAfterSeconds > MAX_WAIT_SECONDS) return undefined;
  return Math.max(1, retryAfterSeconds);
}

function waitFor(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

interface Answer {
  response: Response;
  /** The JSON of the answer; undefined when it is empty or no JSON. */
  body: unknown;
}

async function send(url: string, method: string, headers: Record<string, string>, request: Request): Promise<Answer> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method,
      headers: {
        ...headers,
        ...(request.body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      ...(request.signal && { signal: request.signal }),
      // The credential goes in its header, to this address and no other.
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
    });
    text = await response.text();
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new Unreachable(error);
  }
  const body = parseExactly(text);
  if (!response.ok) throw new Refusal(response, body);
  return { response, body };
}

interface RawJson {
  rawJSON?: (text: string) => unknown;
}

/** JSON whose numbers are printed as they came, where the browser can: 9007199254740993 is not …992. */
function parseExactly(text: string): unknown {
  const { rawJSON } = JSON as RawJson;
  const exact = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && rawJSON && context?.source !== undefined && String(value) !== context.source
      ? rawJSON(context.source)
      : value;
  try {
    return JSON.parse(text, exact);
  } catch {
    return undefined;
  }
}
