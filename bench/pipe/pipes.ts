import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Endable, startChild } from "../child.ts";
import { callApi, deliveriesOf, startService, subscribe } from "../local-service.ts";
import type { Receivers } from "../receivers.ts";
import { FLUSH_MS, type Station } from "./trace.ts";

export interface Event {
  event: string;
  project_id: string;
  deployment_id: string;
  timestamp: string;
  data: object;
}

/** Accepts events and delivers them to one receiver. */
export interface Pipe extends Endable {
  /** Path and secret of the receiver. */
  path: string;
  secret: string;
  newEvent(name?: "deploy.started" | "deploy.failed"): Event;
  /** Resolves when the event has been accepted. */
  publish(event: Event): Promise<unknown>;
}

const eventOf = (project_id: string, event: string): Event => ({
  event,
  project_id,
  deployment_id: randomUUID(),
  timestamp: new Date().toISOString(),
  data: { commit: "3f786850e387550fdab836ed7e6dc881de23001b", branch: "main", build_seconds: 41 },
});

/** The number of deliveries by status. */
export type Ledger = Record<string, number>;

export interface OurPipe extends Pipe {
  /** Sends a test delivery to the receiver that rejects all. It has one attempt. */
  sendSample(): Promise<void>;
  /** Returns the deliveries of both receivers by status, as the API lists them, and the ids of succeeded ones. */
  ledger(): Promise<{ counts: Ledger; succeeded: Set<string> }>;
  /** Returns when events and deliveries passed each station, by `<station> <id>`. */
  passages(): Promise<Map<string, number>>;
}

/** Starts the local service with tracing of its AWS calls. */
export async function startOurs({ origins: [origin] }: Receivers): Promise<OurPipe> {
  const folder = mkdtempSync(join(tmpdir(), "trace-"));
  const TRACE_FILE = join(folder, "trace");
  const trace = pathToFileURL(join(import.meta.dirname, "trace.ts")).href;
  // Retries wait for an hour, so that they do not run during the measurement.
  const service = await startService({ NODE_OPTIONS: `--import ${trace}`, TRACE_FILE, RETRY_SCHEDULE: "3600" });
  const { eventsQueueUrl: QueueUrl, projectId } = service;
  const path = "/ok/ours";
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const sqs = new SQSClient({ endpoint: new URL(QueueUrl).origin, region: "us-east-1", credentials });
  const subscribed = async (receiver: string, event?: string) =>
    subscribe(service, `${origin}${receiver}`, event).catch(async (error: unknown) => {
      await end();
      throw error;
    });
  const end = async () => {
    sqs.destroy();
    await service.end();
    rmSync(folder, { recursive: true });
  };
  const working = await subscribed(path);
  const broken = await subscribed("/broken", "deploy.failed");
  return {
    path,
    secret: working.secret,
    newEvent: (name = "deploy.started") => eventOf(projectId, name),
    publish: (event) => sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(event) })),
    async sendSample() {
      await callApi(service, `${broken.id}/test`, { event: "deploy.failed" });
    },
    async ledger() {
      const counts: Ledger = {};
      const succeeded = new Set<string>();
      for (const { id } of [working, broken]) {
        for await (const delivery of deliveriesOf(service, id)) {
          counts[delivery.status] = (counts[delivery.status] ?? 0) + 1;
          if (delivery.status === "succeeded") succeeded.add(delivery.id);
        }
      }
      return { counts, succeeded };
    },
    async passages() {
      await sleep(2 * FLUSH_MS);
      const lines = readFileSync(TRACE_FILE, "utf8").trimEnd().split("\n");
      const passed = new Map<string, number>();
      for (const [station, id, at] of lines.map((line) => line.split("\t"))) {
        // The first time counts for duplicates.
        const key = passage(station as Station, id ?? "");
        if (!passed.has(key)) passed.set(key, Number(at));
      }
      return passed;
    },
    end,
  };
}

export const passage = (station: Station, id: string): string => `${station} ${id}`;

/** Starts the server with a queue in memory, in its own process. */
export async function startInMemory({ origins: [origin] }: Receivers): Promise<Pipe> {
  const path = "/ok/in-memory";
  const secret = `whsec_${randomBytes(32).toString("hex")}`;
  const file = join(import.meta.dirname, "in-memory.ts");
  const { ready: address, end } = await startChild<string>(file, { args: [`${origin}${path}`, secret] });
  return {
    path,
    secret,
    newEvent: (name = "deploy.started") => eventOf(randomUUID(), name),
    async publish(event) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${address}/events`, { method: "POST", headers, body: JSON.stringify(event) });
      await response.text();
    },
    end,
  };
}
