import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoUser } from "../bin/demo/demo-user.ts";

export interface Service {
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  projectId: string;
  dataDir: string;
  end(): Promise<void>;
}

type ListedDelivery = { id: string; status: string; attempt_count: number };

const root = join(import.meta.dirname, "..");
/** Upper bound for a call of the API. */
const CALL_TIMEOUT_MS = 30_000;

const { PATH, HOME, NODE_COMPILE_CACHE, TEST_ENGINES } = process.env;
/** The engines of a service, where `npm run engines` names one. */
const engines = TEST_ENGINES && { AWS_ENDPOINT_URL_DYNAMODB: TEST_ENGINES, AWS_ENDPOINT_URL_SQS: TEST_ENGINES };

/** Creates an empty data directory for a service. */
export const newDataDir = (): string => mkdtempSync(join(tmpdir(), "bench-"));

export const removeDataDir = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 5 });

/**
 * Starts the program of `npm start` as a process. The process ends with this one, and `end` kills it.
 * @param dataDir data directory, which is kept; undefined = an empty one, which is deleted at the end
 * @throws Error when it exits before it is ready
 */
export async function startService(settings: Record<string, string> = {}, dataDir?: string): Promise<Service> {
  const DATA_DIR = dataDir ?? newDataDir();
  const removeOwn = () => dataDir === undefined && removeDataDir(DATA_DIR);
  const endsWithParent = join(import.meta.dirname, "../test/support/ends-with-parent.cjs");
  const child = spawn(process.execPath, ["--require", endsWithParent, "bin/local.ts"], {
    cwd: root,
    env: { PATH, HOME, NODE_COMPILE_CACHE, DATA_DIR, PORT: "0", SQS_PORT: "0", ...engines, ...settings },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  let page = "";
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    page += text;
    if (/^ready .*$/m.test(page)) break;
  }
  if (!/^ready /m.test(page)) {
    removeOwn();
    throw new Error(`The service exited before it was ready: ${page}`);
  }
  const find = (pattern: RegExp) => pattern.exec(page)?.[1] ?? "";
  return {
    baseUrl: find(/^ready (\S+)$/m),
    eventsQueueUrl: find(/events queue +(\S+)/),
    token: find(/#token=(\S+)/),
    projectId: find(/project +(\S+)/),
    dataDir: DATA_DIR,
    async end() {
      child.kill("SIGKILL");
      await ended;
      removeOwn();
    },
  };
}

/** Adds a project of the same user, as a platform does. Returns the service with that project. */
export async function withNewProject(service: Service): Promise<Service> {
  const projectId = randomUUID();
  const member = { user_id: demoUser.userId, project_id: projectId, name: "Another project", role: "admin" };
  const invoked = await callApi(service, "/2015-03-31/functions/projects-upsert-member/invocations", member);
  if (invoked.headers.has("x-amz-function-error")) throw new Error(`No project was added: ${await invoked.text()}`);
  return { ...service, projectId };
}

/** Calls the API: POST with a body, GET without, unless a method is given. Returns any response. */
export function request(
  { baseUrl, token }: Pick<Service, "baseUrl" | "token">,
  path: string,
  body?: object,
  method = body ? "POST" : "GET",
): Promise<Response> {
  return fetch(new URL(path, baseUrl), {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** Returns the path of something in the project of the service. */
export const projectPath = ({ projectId }: Service, path: string): string => `/v1/projects/${projectId}/${path}`;

/**
 * Calls the API as `request` does.
 * @throws Error with the response unless the call succeeds
 */
export async function callApi(service: Service, path: string, body?: object, method?: string): Promise<Response> {
  const response = await request(service, path, body, method);
  if (!response.ok) throw new Error(`${response.url} returned ${response.status}: ${await response.text()}`);
  return response;
}

/** Creates a webhook in the project of the service. */
export async function subscribe(
  service: Service,
  url: string,
  event = "deploy.started",
): Promise<{ id: string; secret: string }> {
  const created = await callApi(service, projectPath(service, "webhooks"), { url, events: [event] });
  return ((await created.json()) as { data: { id: string; secret: string } }).data;
}

/** Lists all deliveries of a webhook through the API. */
export async function* deliveriesOf(service: Service, webhookId: string): AsyncGenerator<ListedDelivery> {
  let next: string | undefined = projectPath(service, `webhooks/${webhookId}/deliveries?limit=100`);
  while (next !== undefined) {
    const response = await callApi(service, next);
    yield* ((await response.json()) as { data: ListedDelivery[] }).data;
    next = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  }
}
