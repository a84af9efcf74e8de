import { useEffect, useState } from "preact/hooks";
import type { WebhookRef } from "../../../client/src/client.ts";
import {
  countRecoverable,
  type RecoverableStatus,
  type RecoveryCount,
  recoveryCountText,
} from "../../../client/src/recovery-count.ts";
import { FormDialog, useIsClosed } from "./dialog.tsx";
import { Field, RadioGroup } from "./fields.tsx";
import { toLocalInput } from "./filter-bar.tsx";
import { useAction } from "./use-action.ts";

/** Upper bound on the deliveries that the count reads: 20 requests. */
const MAX_COUNTED = 2_000;

interface RecoverDialogProps {
  webhookRef: WebhookRef;
  /** Chosen at first, and counted at once. Absent = all, counted on request. */
  initialStatus?: "pending" | undefined;
  onClose(): void;
  onDone(count: number): void;
}

const recoverable = {
  all: "All but shadowed and superseded",
  failed: "Failed",
  held: "Held",
  pending: "Waiting",
  shadowed: "Shadowed",
  superseded: "Superseded",
} satisfies Record<RecoverableStatus | "all", string>;
type Recoverable = keyof typeof recoverable;

/** Counts the deliveries of a period that failed, are held or wait, and after a confirmation sends them again. */
export function RecoverDialog({ webhookRef, initialStatus, onClose, onDone }: RecoverDialogProps) {
  const initialDays = initialStatus === undefined ? 1 : 7;
  const [since, setSince] = useState(() => toLocalInput(new Date(Date.now() - initialDays * 24 * 3600_000)));
  const [which, setWhich] = useState<Recoverable>(initialStatus ?? "all");
  const [lastCount, setLastCount] = useState<RecoveryCount & { choice: string }>();
  const choice = `${since} ${which}`;
  // Another choice may have been made while this one was counted.
  const counted = lastCount?.choice === choice ? lastCount : undefined;
  const time = new Date(since);
  const [sentCount, setSentCount] = useState(0);
  const isClosed = useIsClosed();
  const status = which === "all" ? undefined : which;
  const count = useAction(async (client) => {
    setSentCount(0);
    setLastCount({
      ...(await countRecoverable(client, webhookRef, { since: time, status, maxRead: MAX_COUNTED })),
      choice,
    });
  });
  const recover = useAction(async (client) => {
    const body = { since: time.toISOString(), ...(status !== undefined && { status }) };
    let total = 0;
    for await (const { count } of client.eachRecovery(webhookRef, body)) {
      total += count;
      setSentCount(total);
      if (isClosed.current) break;
    }
    onDone(total);
  });
  useEffect(() => {
    if (initialStatus !== undefined) count.run();
  }, []);
  const isReady = !Number.isNaN(time.getTime()) && counted?.count !== 0;
  const verb = counted === undefined ? "Count" : recoverVerb(counted);
  return (
    <FormDialog
      title={initialStatus === undefined ? "Resend deliveries of a period" : "Send what waits"}
      action={counted === undefined ? count : recover}
      verb={verb}
      isReady={isReady}
      onClose={onClose}
    >
      {initialStatus !== undefined ? (
        <p>Sends the deliveries of the last week that wait now, oldest first. Their ids stay the same.</p>
      ) : (
        <>
          <p>
            Sends failed and held deliveries again, and those that wait now, oldest first. Their ids stay the same.
            Counts them first.
          </p>
          <Field
            label="Created since"
            path="since"
            hint="In your local time."
            type="datetime-local"
            error={recover.error}
            value={since}
            onInput={(value) => {
              setSince(value);
              setLastCount(undefined);
            }}
          />
          <RadioGroup
            legend="Status"
            values={Object.keys(recoverable) as Recoverable[]}
            chosen={which}
            onChange={(value) => {
              setWhich(value);
              setLastCount(undefined);
            }}
            labelOf={(value) => recoverable[value]}
          />
        </>
      )}
      <p role="status">
        {count.isBusy && "Counting…"}
        {counted && sentCount === 0 && recoveryCountText(counted, MAX_COUNTED)}
        {sentCount > 0 && `${sentCount} sent again so far.`}
      </p>
    </FormDialog>
  );
}

function recoverVerb({ count, complete }: RecoveryCount): string {
  if (!complete) return `Resend ${count}+`;
  return count === 0 ? "Resend" : `Resend ${count}`;
}
