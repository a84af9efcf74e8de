import { CheckSkipped } from "./findings.ts";
import type { Listener } from "./listener.ts";
import type { SmokeOptions } from "./options.ts";
import type { Answer, Send } from "./stage-client.ts";

/** What the checks share: the stage, and what the earlier ones found or made there for the later ones. */
export interface CheckContext {
  send: Send;
  /** All answers so far. */
  answers: Answer[];
  options: SmokeOptions;
  /** Name of what this run makes: a key's name, the fragment of a webhook's URL. */
  mark: string;
  /** How long an outcome is waited for that comes by itself. */
  patienceMs: number;
  stop: AbortSignal;
  /** Never to be printed. */
  secrets: Set<string>;
  /** What is to be removed at the end: path -> what it is. */
  made: Map<string, string>;
  listener?: Listener;
  /** Of the user; absent until the JWT is let in. */
  projects?: Project[];
  key?: { id: string; key: string; keyPrefix: string };
  /** What `options.projectId` or the user's roles lead to. */
  project?: Project;
  webhook?: { id: string; path: string; secret: string };
}

export interface Project {
  id: string;
  name: string;
  role: string;
}

/** One promise of the service. */
export interface Check {
  /** As a claim, which holds or does not. */
  claim: string;
  /**
   * @returns what is worth telling about it; undefined = nothing
   * @throws Unkept when it does not hold, NotHere when it cannot be checked, Doubtful when somebody should know
   */
  run(scene: CheckContext): Promise<string | undefined>;
  /** When it does not hold, nothing after it can. */
  isGate?: true;
  /** The sections of docs/runbook.md that help when it does not hold; absent = those of the chapter. */
  sections?: string[];
}

export interface CheckGroup {
  title: string;
  /** The sections of docs/runbook.md that help when one of its checks fails. */
  sections: string[];
  checks: Check[];
}

/** @throws NotHere when an earlier check did not get so far */
export function requireResource<Value>(value: Value | undefined, reason: string): Value {
  if (value === undefined) throw new CheckSkipped(reason, { isExcused: true });
  return value;
}

export const signedIn = ({ projects }: CheckContext): Project[] => requireResource(projects, "the JWT was not let in");
