import type { Client, Webhook, WebhookEventName } from "../../../client/src/client.ts";
import type { EventFilter } from "../../../client/src/event-filter.ts";
import { credentialsIn } from "../../../client/src/url-credentials.ts";
import { EventCheckboxes } from "./choices.tsx";
import { type DeliveryFields, DeliverySettings, useDeliverySettings } from "./delivery-settings.tsx";
import { FormDialog, type FormDialogProps } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { FilterField, useFilter } from "./filter-field.tsx";
import { useAction } from "./use-action.ts";
import { useDraft } from "./use-draft.ts";

interface WebhookInput {
  url: string;
  /** Empty = none. */
  name: string;
  events: WebhookEventName[];
  /** Null = none. */
  filter: EventFilter | null;
  isFilterChanged: boolean;
  /** Format, headers and delivery, as far as they were changed. */
  delivery: DeliveryFields;
}

interface WebhookFormProps extends Pick<FormDialogProps, "title" | "verb" | "onClose"> {
  projectId: string;
  initial: Pick<
    Webhook,
    "url" | "name" | "events" | "filter" | "format" | "header_names" | "signatures" | "delivery" | "settle_seconds"
  >;
  urlHint?: string;
  save(client: Client, input: WebhookInput): Promise<void>;
}

/** Asks for the settings of a new webhook, or of one that exists. */
export function WebhookForm({ projectId, initial, urlHint, save, ...props }: WebhookFormProps) {
  const [url, setUrl] = useDraft("url", initial.url);
  const [name, setName] = useDraft("name", initial.name ?? "");
  const [events, setEvents] = useDraft("events", initial.events);
  const filterInput = useFilter(initial.filter);
  const { filter, isChanged: isFilterChanged } = filterInput;
  const settings = useDeliverySettings(initial, url);
  const { fields: delivery, rows, setHeaders } = settings;
  const found = credentialsIn(url);
  const isReady = url.trim() !== "" && events.length > 0 && filter !== undefined;
  const action = useAction(async (client) => {
    if (filter === undefined) return;
    await save(client, { url: url.trim(), name: name.trim(), events, filter, isFilterChanged, delivery });
  });
  const { error } = action;
  return (
    <FormDialog {...props} action={action} isReady={isReady} fields={["url", "name", "filter", "settle_seconds"]}>
      <Field
        label="URL"
        path="url"
        {...(urlHint !== undefined && { hint: urlHint })}
        error={error}
        value={url}
        onInput={setUrl}
        maxLength={2048}
      />
      {found && (
        <p class="note warning">
          The URL has a user name and password, which are not accepted there.{" "}
          <button
            type="button"
            class="plain small"
            onClick={() => {
              setUrl(found.url);
              const others = rows.filter(([header]) => header.toLowerCase() !== "authorization");
              setHeaders([...others, ["Authorization", found.authorization]]);
            }}
          >
            Send them as a header
          </button>
        </p>
      )}
      <Field label="Name" path="name" error={error} value={name} onInput={setName} maxLength={100} isOptional />
      <EventCheckboxes chosen={events} onChange={setEvents} />
      <FilterField projectId={projectId} events={events} error={error} {...filterInput} />
      <DeliverySettings {...settings} error={error} />
    </FormDialog>
  );
}
