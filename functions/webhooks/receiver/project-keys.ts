import { PUBLIC_KEYS_PATH } from "../../foundation/manifest/protocols.ts";
import type { secretVersions } from "../../foundation/platform/aws.ts";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { secretCache } from "../../foundation/platform/secret-cache.ts";
import type { Webhook } from "../webhook/webhook.ts";
import { type ProjectKey, projectKey } from "./project-key.ts";
import type { Signing } from "./signing.ts";

/* The keys of projects, from the versions of the secret of the stage. Senders and the directory of public keys have it, no one else. */

/** Of one process. A sender serves few projects at a time; deriving a key takes 0.1 ms. */
const MAX_KEYS = 1_000;
const derived = new Map<string, ProjectKey>();

function keyOf(secret: string, projectId: string): ProjectKey {
  const name = `${projectId} ${secret}`;
  const key = derived.get(name) ?? projectKey(secret, projectId);
  if (derived.size >= MAX_KEYS) derived.clear();
  derived.set(name, key);
  return key;
}

const versionsOf = secretCache(
  "signature secret",
  ({ current, ...others }, arn) => {
    if (current === undefined) throw new SettingError(`The secret ${arn} has no value.`);
    return { current, ...others };
  },
  ["AWSCURRENT", "AWSPREVIOUS", "AWSPENDING"],
);

async function secrets(now: Date) {
  const arn = settings.signatureSecretArn();
  return arn === undefined ? { current: settings.signatureSecret() } : versionsOf.get(arn, now);
}

/** Returns how the requests of a webhook are signed; undefined = with its secret only. */
export async function signingOf(
  { project_id, url, signatures: schemes }: Pick<Webhook, "project_id" | "url" | "signatures">,
  now: Date,
): Promise<Signing | undefined> {
  if (schemes === undefined) return undefined;
  const key = keyOf((await secrets(now)).current, project_id);
  return { schemes, key, url, directory: `${settings.apiUrl() ?? ""}${PUBLIC_KEYS_PATH}?project_id=${project_id}` };
}

/**
 * Returns the public keys of a project: the one that signs, the one that will, and the one that did before the last
 * rotation.
 */
export async function publicKeys(projectId: string, now: Date): Promise<ProjectKey["jwk"][]> {
  const { current, pending, previous }: Partial<Awaited<ReturnType<typeof secretVersions>>> = await secrets(now);
  const known = new Set([current, pending, previous].filter((secret) => secret !== undefined));
  return [...known].map((secret) => keyOf(secret, projectId).jwk);
}
