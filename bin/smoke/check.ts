import type { Client } from "../../packages/client/src/client.ts";
import type { startReceiver } from "../demo/demo-receiver.ts";
import type { SmokeOptions } from "./options.ts";

/* What the checks share, and how one fails. */

/**
 * Runs one check and prints a line about it.
 * @param claim the documented behavior, as a sentence that is true when the check passes
 * @param verify throws when the claim is false
 * @param noteOf returns what is printed beside the claim; absent = nothing
 * @returns what `verify` returns
 * @throws Error when the check failed, which is printed already, or the run has ended
 */
export type RunCheck = <Result>(
  claim: string,
  verify: () => Promise<Result>,
  noteOf?: (result: Result) => string,
) => Promise<Result>;

export interface CheckGroup {
  title: string;
  /** Sections of docs/runbook.md that help when one of the checks fails. */
  sections: string[];
  /** Runs its checks, in an order in which each uses what the ones before it have found or created. */
  run(context: CheckContext, check: RunCheck): Promise<void>;
}

/** The stage. */
export interface CheckContext {
  options: SmokeOptions;
  /** Acts with a credential: the JWT of the user, or an API key. */
  clientOf(credential: string): Client;
  /** Marks what this run creates: the name of a key and of a webhook. */
  mark: string;
  limits: Limits;
  stop: AbortSignal;
  /** Values that must never be printed. */
  secrets: Set<string>;
  /** Whether the JWT was accepted: only then can something exist because of this run. */
  isAccepted: boolean;
  /** With `--listen`: receives the deliveries. */
  receiver?: Awaited<ReturnType<typeof startReceiver>>;
}

/** In milliseconds. */
export interface Limits {
  /** Timeout of a request. */
  requestMs: number;
  /** Max wait for the result of a test delivery. */
  deliveryMs: number;
  /** No check begins after this time. */
  totalMs: number;
}

/** @throws Error with this message, which states what was expected and what was received, if the condition is false */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
