import type { TransactItem } from "../platform/aws.ts";
import { findEarlier, outcomePut, type RepeatableRequest } from "./idempotency-store.ts";

/* Idempotent creates: what is stored about the first request, and when a repeat gets the same response. */

/** The data of a response that creates something. With `secret` or `key`, it is shown only once. */
export interface Repeated {
  id: string;
  secret?: string;
  key?: string;
}

/**
 * Returns the items that make a repeat of a request safe, for the transaction that creates the resource. Of data with a
 * secret, only the id is stored.
 * @param request undefined = the client does not repeat the request: no items
 */
export function outcomeItems(
  request: RepeatableRequest | undefined,
  data: Repeated,
  now: Date,
): Record<string, TransactItem> {
  if (request === undefined) return {};
  const hasSecret = data.secret !== undefined || data.key !== undefined;
  return { outcome: outcomePut(request, { created_id: data.id, ...(!hasSecret && { data }) }, now) };
}

/**
 * Runs a request unless the same one has succeeded already.
 * @param request undefined = the client does not repeat the request: it runs
 * @param toResponse returns the response with the data of the earlier request
 * @throws ApiError as `findEarlier`, or the error of `run`
 */
export async function runOnce<Response>(
  request: RepeatableRequest | undefined,
  now: Date,
  run: () => Promise<Response>,
  toResponse: (data: { id: string }) => Response,
): Promise<Response> {
  if (request === undefined) return run();
  const earlier = await findEarlier(request, now);
  if (earlier) return toResponse(earlier);
  try {
    return await run();
  } catch (error) {
    // A concurrent request with the same key was faster: its outcome is the answer, whatever failed here.
    const faster = await findEarlier(request, now);
    if (faster) return toResponse(faster);
    throw error;
  }
}
