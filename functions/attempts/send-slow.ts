import { certify } from "./certify.ts";
import { drain } from "./drain.ts";
import { createSender } from "./sender.ts";

/** Makes the attempts of slow, busy and failing webhooks, drains the parking of webhooks, and certifies receivers. */
export const handler = createSender("slow", { onWakeUp: drain, onCertify: certify });
