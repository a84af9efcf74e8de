import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sampleFields } from "../../functions/foundation/events/sample-event.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { createClient } from "../../packages/client/src/client.ts";
import { mintToken } from "../command/mint-token.ts";
import { sendEvent } from "../command/send-event.ts";
import { readSettings } from "../command/settings.ts";
import { StartError } from "../command/start-error.ts";
import { demoUser, seedDemoUser } from "../demo/demo-user.ts";
import { type RunningService, startService } from "../emulator/service.ts";
import { smoke } from "../smoke/run.ts";

const EVENTS = 3_000;
/** Events that are sent at the same time. */
const WIDTH = 10;
/** Longer than the slowest retry, and than the sweep needs for a message that was lost. */
const MAX_QUIET_MS = 180_000;

export interface EngineService extends RunningService {
  /** A JWT of the demo user. */
  token: string;
}

/**
 * Runs a service in this process, with an empty data directory, while `use` runs. Prints which errors it has logged.
 * @param endpoints the settings `AWS_ENDPOINT_URL_…`; without one, the embedded engine is used
 */
export async function withService(
  endpoints: Record<string, string>,
  use: (service: EngineService, dataDir: string) => Promise<void>,
): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "engines-"));
  process.once("exit", () => rmSync(dataDir, { recursive: true, force: true }));
  const errors = new Map<string, number>();
  logSink.write = (level, { message, error }) => {
    const text = `${message}: ${(error as Error | undefined)?.message}`;
    if (level === "error") errors.set(text, (errors.get(text) ?? 0) + 1);
  };
  const settings = readSettings({ DATA_DIR: dataDir, PORT: "0", SQS_PORT: "0", ...endpoints });
  const service = await startService(settings);
  try {
    await seedDemoUser();
    await use({ ...service, token: mintToken(settings.jwtSecret, demoUser.userId) }, dataDir);
    for (const [text, count] of errors) console.log(`${count} errors: ${text}`);
  } finally {
    await service.stop();
  }
}

/**
 * Runs the smoke test and some thousand deliveries, of which a third fails at first.
 * @throws StartError when a check fails, or an event is lost
 */
export async function checkService({ baseUrl, token, eventsQueueUrl }: EngineService): Promise<void> {
  const options = { baseUrl, token, receiver: "listen" } as const;
  if (!(await smoke(options, console.log, new AbortController().signal))) throw new StartError("A check failed.");
  const receiver = await startFailingReceiver();
  const { projectId } = demoUser;
  const client = createClient({ baseUrl, token });
  const { id } = await client.createWebhook(projectId, { url: receiver.url, events: ["deploy.started"] });
  const startedAt = performance.now();
  for (let sent = 0; sent < EVENTS; sent += WIDTH) {
    const event = () => sampleFields("deploy.started", { projectId, id: randomUUID(), now: new Date() });
    await Promise.all(Array.from({ length: WIDTH }, () => sendEvent(eventsQueueUrl, event())));
  }
  for (let quietMs = 0, seen = 0; receiver.succeeded.size < EVENTS && quietMs < MAX_QUIET_MS; quietMs += 250) {
    if (receiver.succeeded.size > seen) quietMs = 0;
    seen = receiver.succeeded.size;
    await sleep(250);
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  // A success is recorded after the response.
  await sleep(2_000);
  const { items: pending } = await client.listDeliveries({ projectId, webhookId: id }, { status: "pending" });
  receiver.close();
  const { succeeded, requests, repeats } = receiver;
  const lost = EVENTS - succeeded.size;
  const figures = `${requests()} requests, ${lost} lost, ${repeats()} repeated after a success, ${pending.length} not recorded`;
  console.log(`${EVENTS} events in ${seconds} s: ${figures}`);
  if (lost !== 0 || pending.length > 0) throw new StartError("The ledger of the deliveries does not balance.");
}

/** Responds with 500 to the first request of each fourth delivery, and closes the connection of each tenth. */
async function startFailingReceiver() {
  const seen = new Set<string>();
  const succeeded = new Set<string>();
  const count = { requests: 0, repeats: 0 };
  const server = http.createServer((request, response) => {
    const id = String(request.headers["x-service-delivery"]);
    const isFirst = !seen.has(id);
    seen.add(id);
    count.requests += 1;
    request.resume().once("end", () => {
      if (isFirst && seen.size % 10 === 0) request.socket.destroy();
      else if (isFirst && seen.size % 4 === 0) response.writeHead(500).end();
      else {
        if (succeeded.has(id)) count.repeats += 1;
        succeeded.add(id);
        response.end();
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    succeeded,
    requests: () => count.requests,
    repeats: () => count.repeats,
    close: () => server.close().closeAllConnections(),
  };
}
