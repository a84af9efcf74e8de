import { setTimeout as sleep } from "node:timers/promises";
import type { Client, DeploymentEvent, EventName, EventPage } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { note } from "../terminal/terminal.ts";
import { isTemporary } from "./api.ts";
import { remember } from "./recent-ids.ts";

const FIRST_PAUSE_SECONDS = 1;
const MAX_PAUSE_SECONDS = 30;

interface FollowOptions {
  query: { event?: EventName; deployment_id?: string };
  /** The page of the newest events, which are known already. The feed is followed from there on. */
  latest: EventPage;
  /** Ends the iteration: it throws the reason of the signal. */
  signal: AbortSignal;
  /** Waits before a retry, in milliseconds. Default: until then, or until the signal is aborted. */
  pause?: (ms: number) => Promise<void>;
}

/**
 * Yields each new event of a project once, also across outages of the service.
 * @throws ApiError when a retry cannot help
 */
export async function* eachNewEvent(
  api: Client,
  projectId: string,
  { query, latest, signal, pause = (ms) => sleep(ms, undefined, { signal }) }: FollowOptions,
): AsyncGenerator<DeploymentEvent, void, void> {
  const seen = new Set(latest.items.map(({ id }) => id));
  let cursor = latest.followCursor;
  let pauseSeconds = FIRST_PAUSE_SECONDS;
  let isUnavailable = false;
  for (;;) {
    try {
      const next = { ...query, limit: 100, ...(cursor !== undefined && { after: cursor }) };
      const onPoll = () => {
        if (isUnavailable) note("The service is available again.");
        isUnavailable = false;
        pauseSeconds = FIRST_PAUSE_SECONDS;
      };
      for await (const page of api.followEvents(projectId, next, { onPoll })) {
        const items = page.items.filter(({ id }) => !seen.has(id));
        for (const { id } of items) remember(seen, id);
        // Before the events, which may not be yielded to the end.
        cursor = page.cursor;
        yield* items;
      }
    } catch (error) {
      if (signal.aborted || !isTemporary(error)) throw error;
      if (!isUnavailable) note(`${(error as Error).message} Retrying.`);
      isUnavailable = true;
      const retryAfter = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) : 0;
      await pause(Math.max(pauseSeconds, retryAfter) * 1000);
      pauseSeconds = Math.min(pauseSeconds * 2, MAX_PAUSE_SECONDS);
    }
  }
}
