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
  const [data, setData] = useState('{"environment":"production"}');
  const send = useAction(async () => {
    await sendDeploymentEvent(projectId, name, objectIn(data));
    announce(`${name} was added to the queue.`);
    onSent?.();
  });
  return (
    <>
      <div class="send-event">
        <label>
          <span>Simulate a deployment</span>
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
      </div>
      <ErrorMessage error={send.error} />
    </>
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
