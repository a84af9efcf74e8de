import { randomBytes } from "node:crypto";
import { platform } from "../../foundation/access/actor.ts";
import { chargeSignIn } from "../../foundation/budgets/request-budget-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { ConditionsFailedError } from "../../foundation/platform/aws.ts";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { API_KEY_RANDOM_BYTES, createApiKey, toCreated } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { requireProjects } from "../api-keys/require-projects.ts";
import { INTERVAL_SECONDS, LIFETIME_SECONDS, newCodes, newSignIn, type SignIn, signInInput } from "./sign-in.ts";
import * as signIns from "./sign-in-store.ts";

/**
 * Starts the sign-in of a machine, or answers its poll. The key is created by the poll that returns it: only its hash
 * is stored, and a repeated poll returns `expired`.
 */
export const handler = defineEndpoint(endpoints.requestSignIn, {
  input: signInInput,
  async run({ input: { client = "a program", device_code }, actor, now }) {
    if (device_code === undefined) return ok(await begin(client, actor.address, now));
    const signIn = await signIns.findByDevice(device_code, now);
    if (!signIn) return ok({ status: "expired" });
    if (!(await signIns.ask(signIn, now))) return ok({ status: "slow_down" });
    if (signIn.decision === undefined) return ok({ status: "pending" });
    return ok(signIn.decision !== "approve" ? { status: "denied" } : await keyFor(signIn, now));
  },
});

async function begin(client: string, address: string | undefined, now: Date) {
  await chargeSignIn(`address:${address ?? "unknown"}`, now);
  const { deviceCode, userCode } = newCodes();
  const isNew = await signIns.insert(newSignIn(deviceCode, client, address, now), userCode);
  if (!isNew) throw new Error("A new random code is in use already.");
  const verification_uri = settings.consoleUrl() ?? null;
  const times = { expires_in: LIFETIME_SECONDS, interval: INTERVAL_SECONDS };
  return { status: "pending", device_code: deviceCode, user_code: userCode, verification_uri, ...times };
}

async function keyFor(signIn: SignIn, now: Date) {
  const { user_id, key: limits, by = platform } = signIn;
  if (user_id === undefined || limits === undefined) return { status: "denied" };
  const { apiKey, key } = createApiKey(
    user_id,
    { ...limits, expires_at: new Date(limits.expires_at) },
    now,
    randomBytes(API_KEY_RANDOM_BYTES),
  );
  try {
    // The user may have left a project since the approval.
    await requireProjects(user_id, limits.project_ids);
    await apiKeys.insert(apiKey, by, signIns.taking(signIn), signIn.created_at);
  } catch (error) {
    if (error instanceof ConditionsFailedError) return { status: "expired" };
    if (error instanceof ApiError && error.status < 429) return { status: "denied" };
    throw error;
  }
  return { status: "approved", api_key: toCreated(apiKey, key) };
}
