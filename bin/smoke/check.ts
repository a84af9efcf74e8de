import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Project, WebhookRef } from "../../packages/client/src/client.ts";
import type { startReceiver } from "../demo/demo-receiver.ts";
import type { StageAccount } from "./aws/cloudwatch.ts";
import type { SmokeOptions } from "./options.ts";

/* What a check is, what the checks share, and how one can end other than by passing. */

/** Verifies one documented behavior. */
export interface Check {
  /** The behavior, as a sentence that is true when the check passes. */
  claim: string;
  /**
   * @returns a note to print beside the claim; undefined = none
   * @throws CheckFailed when the claim is false, CheckSkipped when it cannot be checked, CheckWarning when it is true with a
   * problem that the operator should know. An error of the client, of AWS or of the receiver counts as a failure.
   */
  run(context: CheckContext): Promise<string | undefined>;
  /** When this check fails, the remaining checks are not run. */
  isGate?: true;
}

export interface CheckGroup {
  title: string;
  /** Sections of docs/runbook.md that help when one of the checks fails. */
  sections: string[];
  checks: Check[];
}

/** State shared by the checks: the stage, and what earlier checks found or created for later ones. */
export interface CheckContext {
  options: SmokeOptions;
  /** Acts with the JWT of the user. */
  user: Client;
  /** Acts with an API key. */
  holderOf(key: string): Client;
  ask: Ask;
  /** Marks what this run creates: the name of a key, the fragment of a webhook's URL. */
  mark: string;
  startedAt: Date;
  limits: Limits;
  stop: AbortSignal;
  /** Values that must never be printed. */
  secrets: Set<string>;
  /** Deletions of what exists on the stage because of this run, by a name for it. */
  created: Map<string, () => Promise<void>>;
  /** Metrics count these: requests that the authorizer rejected, and test deliveries. */
  count: { rejected: number; tests: number };
  /** With `--listen`: receives the deliveries. */
  receiver?: Awaited<ReturnType<typeof startReceiver>>;
  /** With `--operator`; absent until the stack of the stage was read. */
  account?: StageAccount;
  /** Projects of the user; absent until the JWT is accepted. */
  projects?: Project[];
  key?: { id: string; key: string };
  webhook?: WebhookRef & { secret: string };
}

export interface StageResponse {
  /** `GET /v1/projects` */
  request: string;
  status: number;
  headers: Headers;
  text: string;
}

export interface Call {
  token?: string;
  body?: string;
}

/** Sends one request, without retries and redirects. @throws NetworkError */
export type Ask = (method: string, path: string, call?: Call) => Promise<StageResponse>;

/** In milliseconds. */
export interface Limits {
  /** Timeout of a request. */
  requestMs: number;
  /** Max wait for the result of a test delivery. */
  deliveryMs: number;
  /** No check begins after this time. */
  totalMs: number;
  /** Max wait until metrics arrive in CloudWatch. */
  metricsMs: number;
  /** Max wait until a change of the API works, or a query has run. */
  changeMs: number;
  /** Wait between two questions to AWS. */
  pollMs: number;
}

/** The stage breaks a documented behavior. The message states what was expected and what was received. */
export class CheckFailed extends Error {}

/** The check passed, with a problem that the operator should know. */
export class CheckWarning extends Error {}

/** The check cannot run here. The message states why. */
export class CheckSkipped extends Error {
  /** Not a failure even with `--all`: the cause has been reported by an earlier check, or is no fault of the stage. */
  readonly isExcused: boolean;

  constructor(message: string, { isExcused = false } = {}) {
    super(message);
    this.isExcused = isExcused;
  }
}

/** @throws CheckFailed with this message if the condition is false */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new CheckFailed(message);
}

/** @throws CheckSkipped when an earlier check did not create or find the value */
export function requireResource<Value>(value: Value | undefined, reason: string): Value {
  if (value === undefined) throw new CheckSkipped(reason, { isExcused: true });
  return value;
}

/** Waits. @throws CheckSkipped when the run ends meanwhile */
export async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stop }).catch(() => {
    throw new CheckSkipped("still waiting when the run ended", { isExcused: true });
  });
}
