import { useState } from "preact/hooks";
import type { EventName } from "../../../client/src/client.ts";
import { eventNames } from "../../../client/src/values.ts";
import { sendDeploymentEvent } from "../data/deployment-events.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { ActionButton, ErrorMessage } from "./components.tsx";
import { useAction } from "./use-action.ts";

/** Sends a sample deployment event. Only in a local run. */
export function SendEvent({ projectId, onSent }: { projectId: string; onSent?: () => void }) {
  const { announce } = useSignedIn();
  const [name, setName] = useState<EventName>("deploy.succeeded");
  const send = useAction(async () => {
    await sendDeploymentEvent(projectId, name);
    announce(`${name} was added to the queue.`);
    onSent?.();
  });
  return (
    <>
      <div class="send-event">
        <label>
          <span>Simulate a deployment</span>
          <select value={name} onChange={(event) => setName(event.currentTarget.value as EventName)}>
            {eventNames.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <ActionButton action={send}>Send deployment event</ActionButton>
      </div>
      <ErrorMessage error={send.error} />
    </>
  );
}
