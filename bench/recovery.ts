import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { withStarted } from "./child.ts";
import type { Bench, Result } from "./harness.ts";
import { type Service, startService, subscribe, withNewProject } from "./local-service.ts";
import { type EventsQueue, eventsQueueOf } from "./traffic.ts";

/*
 * Measures how long after its receiver is back all deliveries of a webhook have arrived that waited for it: of a webhook with one, and
 * of another with thousands, at the same time. Most of them have had no attempt, because the circuit was open; the next attempt of a
 * delivery that has had one would be up to five minutes away.
 */

/** `downSeconds` is longer than the circuit needs to open. */
const full = { waiting: 2_000, downSeconds: 40 };
const MAX_WAIT_SECONDS = 600;

export const bench: Bench = {
  name: "recovery",
  about: "a receiver is back → the last delivery that waited for it has arrived",
  run: () => measureRecovery(full),
};

/** @throws Error when a delivery does not arrive in ten minutes */
export function measureRecovery({ waiting, downSeconds }: typeof full): Promise<Result> {
  return withStarted(async (start) => {
    let isDown = true;
    /** By path: the deliveries that were accepted. */
    const accepted = new Map<string, Set<string>>();
    const server = http.createServer((request, response) => {
      const ids = accepted.get(request.url ?? "") ?? new Set();
      accepted.set(request.url ?? "", ids);
      if (!isDown) ids.add(String(request.headers["webhook-id"]));
      request.resume().on("end", () => response.writeHead(isDown ? 503 : 200).end());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    await start({
      async end() {
        server.closeAllConnections();
        server.close();
      },
    });
    const { port } = server.address() as AddressInfo;
    const service = await start(startService());
    const events = await start(eventsQueueOf(service));
    const counts = [1, waiting];
    for (const count of counts) {
      const project = await withNewProject(service);
      await subscribe(project, `http://127.0.0.1:${port}/${count}`);
      await publish(project, events, count);
    }
    while ((await events.depth()) > 0) await sleep(200);
    await sleep(downSeconds * 1000);
    isDown = false;
    const backAt = performance.now();
    const seconds = await Promise.all(
      counts.map(async (count) => {
        const elapsed = () => (performance.now() - backAt) / 1000;
        while ((accepted.get(`/${count}`)?.size ?? 0) < count) {
          if (elapsed() > MAX_WAIT_SECONDS) throw new Error(`Not all of ${count} deliveries arrived.`);
          await sleep(50);
        }
        return elapsed();
      }),
    );
    return {
      tables: [],
      targets: [
        { name: "one that waits", value: seconds[0] ?? Number.NaN, bound: 60, unit: "s" },
        { name: "all that wait", value: seconds[1] ?? Number.NaN, bound: 300, unit: "s", of: `for ${waiting}` },
      ],
      notes: [
        `The receiver was down for ${downSeconds} s more after the events queue was empty. A probe is due every 30 s in the first ten minutes of an outage.`,
      ],
    };
  });
}

/** Publishes so many events of a project, ten at a time. */
async function publish({ projectId }: Service, events: EventsQueue, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 10) {
    await events.publish(
      projectId,
      Array.from({ length: Math.min(10, left) }, () => randomUUID()),
    );
  }
}
