import type { StageAccount } from "./aws/cloudwatch.ts";
import { CheckSkipped } from "./findings.ts";
import type { Listener } from "./listener.ts";
import type { SmokeOptions } from "./options.ts";
import type { Send, StageResponse } from "./stage-client.ts";

/** State shared by the checks: the stage, and the resources that earlier checks found or created for later ones. */
export interface CheckContext {
  send: Send;
  /** Sends a request with the JWT of the user. */
  sendAsUser: Send;
  /** All responses so far. */
  responses: StageResponse[];
  options: SmokeOptions;
  /** Marks the resources that this run creates: the name of a key, the fragment of a webhook's URL. */
  mark: string;
  /** Max wait for the result of a test delivery, in milliseconds. */
  deliveryTimeoutMs: number;
  operatorWaits: OperatorWaits;
  stop: AbortSignal;
  /** Values that must never be printed. */
  secrets: Set<string>;
  /** Resources to remove at the end: path -> kind. */
  created: Map<string, string>;
  listener?: Listener;
  /** With `--operator`; absent until the stack of the stage was read. */
  account?: StageAccount;
  /** Projects of the user; absent until the JWT is accepted. */
  projects?: Project[];
  key?: { id: string; key: string; keyPrefix: string };
  /** The project of the webhook checks: `options.projectId`, or the first one of which the user is an admin. */
  project?: Project;
  webhook?: { id: string; path: string; secret: string };
}

/** Limits of the checks of an operator, in milliseconds. */
export interface OperatorWaits {
  /** Max wait until metrics arrive in CloudWatch. */
  metricsMs: number;
  /** Max wait until a change of the API works, or a query has run. */
  changeMs: number;
  /** Wait between two questions. */
  pollMs: number;
}

export interface Project {
  id: string;
  name: string;
  role: string;
}

/** Verifies one documented behavior. */
export interface Check {
  /** The behavior, as a sentence that is true when the check passes. */
  claim: string;
  /**
   * @returns a note to print beside the claim; undefined = none
   * @throws CheckFailed when the claim is false, CheckSkipped when it cannot be checked, CheckWarning when it is true with
   * a problem that the operator should know
   */
  run(context: CheckContext): Promise<string | undefined>;
  /** When this check fails, the remaining checks are not run. */
  isGate?: true;
  /** Sections of docs/runbook.md that help when the check fails; absent = those of its group. */
  sections?: string[];
}

export interface CheckGroup {
  title: string;
  /** Sections of docs/runbook.md that help when one of the checks fails. */
  sections: string[];
  checks: Check[];
}

/** @throws CheckSkipped when an earlier check did not create or find the value */
export function requireResource<Value>(value: Value | undefined, reason: string): Value {
  if (value === undefined) throw new CheckSkipped(reason, { isExcused: true });
  return value;
}

/** Returns the user's projects. @throws CheckSkipped when the JWT was not accepted */
export const requireProjects = ({ projects }: CheckContext): Project[] =>
  requireResource(projects, "the JWT was not accepted");
