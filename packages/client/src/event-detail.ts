import type { DeploymentEvent } from "./client.ts";

/** The fields of `data` that say where the app is, or why it failed, in the order of preference. */
const INFORMATIVE = ["url", "reason", "error", "message"];

/** Returns the text of `data` that says most about the event; undefined when it has none. */
export function detailOf({ payload }: DeploymentEvent): string | undefined {
  const data = new Map<string, unknown>(Object.entries(payload.data ?? {}));
  const texts = INFORMATIVE.map((field) => data.get(field)).filter((value) => typeof value === "string");
  return texts.find((text) => text !== "");
}
