import type { Webhook } from "../../client/src/client.ts";
import { FormDialog } from "./dialog.tsx";
import { useAction } from "./use-action.ts";

interface DisableDialogProps {
  webhook: Webhook;
  onClose(): void;
  onDone(): void;
}

/** Asks before a webhook is disabled, and says what happens to its deliveries. */
export function DisableDialog({ webhook, onClose, onDone }: DisableDialogProps) {
  const disable = useAction(async (client) => {
    await client.updateWebhook({ projectId: webhook.project_id, webhookId: webhook.id }, { enabled: false });
    onDone();
  });
  return (
    <FormDialog title="Disable this webhook?" action={disable} verb="Disable webhook" look="danger" onClose={onClose}>
      <p class="breaks">
        <code>{webhook.url}</code> receives nothing until an admin enables the webhook again.
      </p>
      <p>
        No delivery is lost: pending deliveries and those of new events are held. After you enable the webhook, send
        them with “Recover…”.
      </p>
    </FormDialog>
  );
}
