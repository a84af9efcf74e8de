import { useState } from "preact/hooks";
import type { DeploymentEvent } from "../../../client/src/client.ts";
import {
  type EventFilter,
  filterLines,
  newestEvents,
  readFilter,
  TRIED_EVENTS,
  trialOf,
} from "../../../client/src/event-filter.ts";
import { ActionButton, Code, ErrorMessage, Field } from "./components.tsx";
import { useAction } from "./use-action.ts";
import { useDraft } from "./use-draft.ts";

/** The text of a form's filter, and what it says: null = no filter, undefined = it is not valid. */
export function useFilter(initial: EventFilter = {}) {
  const initialText = filterLines(initial).join("\n");
  const [text, setText] = useDraft("filter", initialText);
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  const read = readFilter(lines);
  const [filter, invalid] = "filter" in read ? [lines.length > 0 ? read.filter : null] : [undefined, read.invalid];
  return { text, setText, isChanged: text !== initialText, filter, invalid };
}

interface FilterFieldProps extends ReturnType<typeof useFilter> {
  projectId: string;
  events: string[];
  error: Error | undefined;
}

/** The field of a form for a filter, with what the filter decides. */
export function FilterField({ projectId, events, error, text, setText, filter, invalid }: FilterFieldProps) {
  return (
    <>
      <Field
        label="Filter"
        path="filter"
        hint="Sends only deployment events with these values in their data. One field=value per line: environment=production. * at the end of a value stands for any rest: branch=release/*"
        error={error}
        value={text}
        onInput={setText}
        rows={2}
        isOptional
      />
      {invalid !== undefined && <p class="problem">“{invalid}” is not field=value.</p>}
      {filter && <FilterTrial projectId={projectId} webhook={{ events, filter }} />}
    </>
  );
}

interface FilterTrialProps {
  projectId: string;
  webhook: { events: string[]; filter: EventFilter };
}

/** Shows what a filter decides about the newest events, and why. */
export function FilterTrial({ projectId, webhook }: FilterTrialProps) {
  const [events, setEvents] = useState<DeploymentEvent[]>();
  const load = useAction(async (client) => setEvents(await newestEvents(client, projectId)));
  const trial = events && trialOf(webhook, events);
  const lines = trial?.decisions.map(({ timestamp, event, received, reason }) =>
    [received ? "sent    " : "not sent", timestamp, event.padEnd("deploy.succeeded".length), reason].join("  "),
  );
  return (
    <div class="field">
      <div>
        <ActionButton action={load}>Try on the last {TRIED_EVENTS} events</ActionButton>
      </div>
      <ErrorMessage error={load.error} />
      {trial && (
        <p class="fine" role="status">
          {trial.summary}
        </p>
      )}
      {trial?.problems.map((text) => (
        <p class="problem" key={text}>
          {text}
        </p>
      ))}
      {lines && lines.length > 0 && (
        <Code label="Decisions" look="excerpt">
          {lines.join("\n")}
        </Code>
      )}
    </div>
  );
}
