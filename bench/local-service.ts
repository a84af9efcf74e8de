import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Service {
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  projectId: string;
  end(): Promise<void>;
}

/** `npm start`'s program as a process of its own, over fresh data that goes when it ends. */
export async function startService(settings: Record<string, string> = {}): Promise<Service> {
  const { PATH, HOME } = process.env;
  const DATA_DIR = mkdtempSync(join(tmpdir(), "bench-"));
  const child = spawn(process.execPath, ["bin/local.ts"], {
    cwd: join(import.meta.dirname, ".."),
    env: { PATH, HOME, DATA_DIR, PORT: "0", SQS_PORT: "0", ...settings },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  let page = "";
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    page += text;
    if (/^ready .*$/m.test(page)) break;
  }
  const find = (pattern: RegExp) => pattern.exec(page)?.[1] ?? "";
  return {
    baseUrl: find(/^ready (\S+)$/m),
    eventsQueueUrl: find(/events queue +(\S+)/),
    token: find(/TOKEN=(\S+)/),
    projectId: find(/project +(\S+)/),
    async end() {
      child.kill("SIGKILL");
      await ended;
      rmSync(DATA_DIR, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/**
 * Calls the API below the webhooks of the service's project: a POST with a body, a GET without.
 * @throws Error with the answer when it is no success
 */
export async function ask({ baseUrl, token, projectId }: Service, path: string, body?: object): Promise<Response> {
  const url = new URL(path, `${baseUrl}/v1/projects/${projectId}/webhooks/`).href.replace(/\/$/, "");
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}: ${await response.text()}`);
  return response;
}

/** Creates a webhook in the service's project. */
export async function subscribe(
  service: Service,
  url: string,
  event = "deploy.started",
): Promise<{ id: string; secret: string }> {
  return ((await (await ask(service, "", { url, events: [event] })).json()) as { data: { id: string; secret: string } })
    .data;
}

/** All deliveries of a webhook, as the API lists them. */
export async function* deliveriesOf(
  service: Service,
  webhookId: string,
): AsyncGenerator<{ id: string; status: string }> {
  let next: string | undefined = `${webhookId}/deliveries?limit=100`;
  while (next !== undefined) {
    const response = await ask(service, next);
    yield* ((await response.json()) as { data: { id: string; status: string }[] }).data;
    next = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  }
}
