import type { Grants } from "../functions/manifest/grants-schema.ts";
import { tablesOf } from "./grants.ts";
import type { Stage } from "./stage.ts";

type Variables = Record<string, string | undefined>;

/**
 * The options of a stage as the environment variables that functions/platform/env.ts reads: credentials concern the
 * authorizer, deliveries whoever reads or writes them. Absent options have their default there.
 */
export function settingsFor(file: string, uses: Grants, stage: Stage): Variables {
  return {
    ...(file === "auth/authorizer" && credentialSettings(stage)),
    ...(tablesOf(uses).includes("deliveries") && deliverySettings(stage)),
  };
}

function credentialSettings({ jwt, jwks, apiKeys }: Stage): Variables {
  return {
    JWT_ISSUER: jwt?.issuer,
    JWT_AUDIENCE: jwt?.audience,
    JWT_MAX_LIFETIME_SECONDS: jwt?.maxLifetimeSeconds?.toString(),
    JWT_CLOCK_SKEW_SECONDS: jwt?.clockSkewSeconds?.toString(),
    JWKS_ISSUER: jwks?.issuer,
    JWKS_URI: jwks?.uri,
    JWKS_AUDIENCE: jwks?.audience,
    LAST_USED_RESOLUTION_SECONDS: apiKeys?.lastUsedResolutionSeconds?.toString(),
  };
}

function deliverySettings({ deliveries }: Stage): Variables {
  return {
    RETRY_SCHEDULE: deliveries?.retrySchedule?.join(","),
    DELIVERY_GRACE_SECONDS: deliveries?.graceSeconds?.toString(),
    DISABLE_AFTER_SECONDS: deliveries?.disableAfterSeconds?.toString(),
  };
}
