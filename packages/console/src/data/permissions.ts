import type { Permission } from "../../../client/src/client.ts";
import { permissions } from "../../../client/src/values.ts";

const read: Permission[] = ["projects:read", "webhooks:read", "deliveries:read", "events:read"];

/** Usual sets of permissions. */
export const presets = {
  "CI: read": read,
  "CI: manage webhooks": permissions.filter((each) => read.includes(each) || each === "webhooks:write"),
} satisfies Record<string, Permission[]>;
export type Preset = keyof typeof presets;

/** Returns the name of the preset with exactly these permissions, in any order. */
export function presetOf(chosen: readonly Permission[]): Preset | undefined {
  const isSame = (preset: readonly Permission[]) =>
    preset.length === chosen.length && preset.every((each) => chosen.includes(each));
  return (Object.keys(presets) as Preset[]).find((name) => isSame(presets[name]));
}

const DAY_MS = 24 * 3600_000;

/** When a new key expires. The API accepts at most 366 days. */
export const lifetimes = {
  "30": "30 days",
  "90": "90 days",
  "180": "180 days",
  "365": "a year",
  never: "never",
};
export type Lifetime = keyof typeof lifetimes;

/** Returns when a key expires, ISO 8601; undefined = never. @param now epoch milliseconds */
export const expiryOf = (lifetime: Lifetime, now: number): string | undefined =>
  lifetime === "never" ? undefined : new Date(now + Number(lifetime) * DAY_MS).toISOString();
