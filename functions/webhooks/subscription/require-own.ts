import { ApiError } from "../../foundation/platform/errors.ts";
import type { Webhook } from "../webhook/webhook.ts";

/** @throws ApiError `validation_error` for a subscription, which only its client changes and tests */
export function requireOwn({ subscription }: Pick<Webhook, "subscription">): void {
  if (subscription === undefined) return;
  throw new ApiError(
    "validation_error",
    "This is the subscription of an assistant: it can be disabled, enabled and deleted.",
  );
}
