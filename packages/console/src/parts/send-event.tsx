import { useState } from "preact/hooks";
import type { EventName } from "../../../client/src/client.ts";
import { eventNames } from "../../../client/src/values.ts";
import { sendDeploymentEvent } from "../data/deployment-events.ts";
import { FormDialog } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { useAction } from "./use-action.ts";

/** Sends a sample deployment event. Only in a local run. */
export function SendEventDialog({ projectId, onClose, onDone }: { projectId: string } & SentDialogProps) {
  const [name, setName] = useState<EventName>("deploy.succeeded");
  const [data, setData] = useState('{"environment":"production"}');
  const send = useAction(async () => {
    await sendDeploymentEvent(projectId, name, objectIn(data));
    onDone(`${name} was added to the queue.`);
  });
  return (
    <FormDialog title="Simulate a deployment" action={send} verb="Send deployment event" onClose={onClose}>
      <p>Adds an event to the queue, as the pipeline does. Only a local run offers this.</p>
      <Field label="Event" path="" error={undefined} value={name} onInput={setName} suggestions={eventNames} />
      <Field label="Data" path="" error={undefined} value={data} onInput={setData} rows={2} />
    </FormDialog>
  );
}

interface SentDialogProps {
  onClose(): void;
  onDone(message: string): void;
}

/** @throws Error with what to fix */
function objectIn(text: string): object {
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Not JSON: the same advice.
  }
  throw new Error('Data must be a JSON object, such as {"environment":"production"}.');
}
