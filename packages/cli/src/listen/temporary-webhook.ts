import type { Client, EventName } from "../../../client/src/client.ts";
import { exitCodes } from "../exit-codes.ts";
import { note } from "../terminal.ts";
import type { Subscription } from "./receive.ts";

/**
 * Creates a webhook that ends with the command.
 * @param api a client without a signal: an interrupted command must still learn the id, and delete the webhook
 */
export async function createTemporaryWebhook(
  api: Client,
  projectId: string,
  { url, events }: { url: string; events: EventName[] },
): Promise<Subscription> {
  const { id, secret } = await api.createWebhook(projectId, { url, events });
  note(`Created the temporary webhook ${id} for ${events.join(", ")}.`);
  return {
    secrets: [secret],
    async end() {
      try {
        await api.deleteWebhook({ projectId, webhookId: id });
        note(`Deleted the temporary webhook ${id}.`);
      } catch (error) {
        process.exitCode = exitCodes.failed;
        note(
          `Could not delete the temporary webhook: ${(error as Error).message} To delete it: svc webhooks delete ${id} --project ${projectId}`,
        );
      }
    },
  };
}
