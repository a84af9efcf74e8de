import { useState } from "preact/hooks";
import type { Client, Webhook, WebhookEventName } from "../../../client/src/client.ts";
import type { EventFilter } from "../../../client/src/event-filter.ts";
import { EventCheckboxes } from "./choices.tsx";
import { Field } from "./components.tsx";
import { FormDialog, type FormDialogProps } from "./dialog.tsx";
import { FilterField, useFilter } from "./filter-field.tsx";
import { useAction } from "./use-action.ts";

interface WebhookInput {
  url: string;
  /** Empty = none. */
  name: string;
  events: WebhookEventName[];
  /** Null = none. */
  filter: EventFilter | null;
  isFilterChanged: boolean;
}

interface WebhookFormProps extends Pick<FormDialogProps, "title" | "verb" | "onClose"> {
  projectId: string;
  initial: Pick<Webhook, "url" | "name" | "events" | "filter">;
  urlHint?: string;
  save(client: Client, input: WebhookInput): Promise<void>;
}

/** Asks for the settings of a new webhook, or of one that exists. */
export function WebhookForm({ projectId, initial, urlHint, save, ...props }: WebhookFormProps) {
  const [url, setUrl] = useState(initial.url);
  const [name, setName] = useState(initial.name ?? "");
  const [events, setEvents] = useState(initial.events);
  const filterInput = useFilter(initial.filter);
  const { filter, isChanged: isFilterChanged } = filterInput;
  const isReady = url.trim() !== "" && events.length > 0 && filter !== undefined;
  const action = useAction(async (client) => {
    if (filter === undefined) return;
    await save(client, { url: url.trim(), name: name.trim(), events, filter, isFilterChanged });
  });
  const { error } = action;
  return (
    <FormDialog {...props} action={action} isReady={isReady} fields={["url", "name", "filter"]}>
      <Field
        label="URL"
        path="url"
        {...(urlHint !== undefined && { hint: urlHint })}
        error={error}
        value={url}
        onInput={setUrl}
        maxLength={2048}
      />
      <Field label="Name" path="name" error={error} value={name} onInput={setName} maxLength={100} isOptional />
      <EventCheckboxes chosen={events} onChange={setEvents} />
      <FilterField projectId={projectId} events={events} error={error} {...filterInput} />
    </FormDialog>
  );
}
