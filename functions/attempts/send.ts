import { createSender } from "./sender.ts";

/**
 * Makes the attempts that are due. A failed attempt is recorded; only an internal error returns a message to the queue.
 */
export const handler = createSender("normal");
