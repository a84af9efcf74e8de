import { useState } from "preact/hooks";
import type { EventName } from "../../../client/src/client.ts";
import { eventNames } from "../../../client/src/values.ts";
import { sendDeploymentEvent } from "../data/deployment-events.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { ActionButton, ErrorMessage } from "./components.tsx";
import { useAction } from "./use-action.ts";

/** What the window hears after an event was sent: lists of deliveries reload. */
export const EVENT_SENT = "deployment-event-sent";

/** Sends a sample deployment event, behind a button. Only in a local run: nothing elsewhere. */
export function SendEvent({ projectId }: { projectId: string }) {
  const { announce, canSendEvents } = useSignedIn();
  const [name, setName] = useState<EventName>("deploy.succeeded");
  const [data, setData] = useState('{"environment":"production"}');
  const send = useAction(async () => {
    await sendDeploymentEvent(projectId, name, objectIn(data));
    announce(`${name} was added to the queue.`);
    dispatchEvent(new Event(EVENT_SENT));
  });
  if (!canSendEvents) return null;
  return (
    <details class="menu">
      <summary class="button plain small">Simulate a deployment</summary>
      <div class="send-event">
        <label>
          <span>Simulated event</span>
          <input
            list="known-events"
            autoComplete="off"
            spellcheck={false}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <datalist id="known-events">
            {eventNames.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </label>
        <label>
          <span>Data</span>
          <input
            autoComplete="off"
            spellcheck={false}
            value={data}
            onInput={({ currentTarget }) => setData(currentTarget.value)}
          />
        </label>
        <ActionButton action={send}>Send deployment event</ActionButton>
        <ErrorMessage error={send.error} />
      </div>
    </details>
  );
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
