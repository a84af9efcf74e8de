import { drain } from "./drain.ts";
import { createSender } from "./sender.ts";

/** Makes the attempts of slow, busy and failing webhooks, and drains the parking of webhooks. */
export const handler = createSender("slow", drain);
