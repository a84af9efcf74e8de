import { useState } from "preact/hooks";
import type { Delivery } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { resentText } from "../data/short.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { FormDialog, useIsClosed } from "./dialog.tsx";
import { useAction } from "./use-action.ts";

interface ResendDialogProps {
  projectId: string;
  deliveries: Delivery[];
  onClose(): void;
  /** Called when at least one delivery was sent again, before the dialog closes. */
  onSent(): void;
}

interface Failure {
  delivery: Delivery;
  reason: string;
}

/**
 * Sends the chosen deliveries again after a confirmation, one request each, oldest first. After a 429 the client waits as
 * long as `Retry-After` says. An error that every further request would get ends the run; it continues with "Resend".
 */
export function ResendDialog({ projectId, deliveries, onClose, onSent }: ResendDialogProps) {
  const { announce } = useSignedIn();
  const [left, setLeft] = useState(() => [...deliveries].sort((a, b) => (a.id < b.id ? -1 : 1)));
  const [failures, setFailures] = useState<Failure[]>([]);
  const isClosed = useIsClosed();
  const sentCount = deliveries.length - left.length - failures.length;

  const resend = useAction(async (client) => {
    const failed = [...failures];
    let rest = left;
    while (rest.length > 0 && !isClosed.current) {
      const [delivery, ...others] = rest;
      if (!delivery) break;
      try {
        await client.redeliver({ projectId, webhookId: delivery.webhook_id }, delivery.id);
      } catch (error) {
        if (!isOfOneDelivery(error)) throw error;
        failed.push({ delivery, reason: error.message });
        setFailures([...failed]);
      }
      rest = others;
      setLeft(others);
    }
    const count = deliveries.length - rest.length - failed.length;
    if (count > 0) onSent();
    if (failed.length > 0) return;
    announce(resentText(count));
    if (!isClosed.current) onClose();
  });

  function close(): void {
    if (sentCount > 0) onSent();
    onClose();
  }

  const hasStarted = left.length < deliveries.length;
  const isFinished = left.length === 0;
  return (
    <FormDialog
      title="Resend deliveries"
      action={resend}
      verb={`Resend ${left.length}`}
      isReady={!isFinished}
      onClose={close}
    >
      {!hasStarted && (
        <p>
          {deliveries.length === 1 ? "1 delivery is" : `${deliveries.length} deliveries are`} sent again, oldest first,
          also those that succeeded. Their ids stay the same, so a receiver can recognize them.
        </p>
      )}
      <div role="status">
        {hasStarted && (
          <p>
            {sentCount} of {deliveries.length} sent again{failures.length > 0 && `, ${failures.length} rejected`}
            {resend.isBusy ? "…" : "."}
          </p>
        )}
      </div>
      {hasStarted && <progress max={deliveries.length} value={deliveries.length - left.length} aria-label="Progress" />}
      {failures.length > 0 && (
        <ul class="failures">
          {failures.map(({ delivery, reason }) => (
            <li key={delivery.id}>
              <code class="fine">{delivery.id}</code> {reason}
            </li>
          ))}
        </ul>
      )}
    </FormDialog>
  );
}

/** Whether an error concerns one delivery only: it or its webhook does not exist, or its state does not allow it. */
const isOfOneDelivery = (error: unknown): error is ApiError =>
  error instanceof ApiError && [404, 409].includes(error.status) && error.code !== "project_suspended";
