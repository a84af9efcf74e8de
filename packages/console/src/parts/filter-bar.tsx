import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { DeliveryErrorCode } from "../../../client/src/client.ts";
import {
  deliveryErrorCodes,
  deliveryErrorMeanings,
  deliveryStatuses,
  eventNames,
  webhookEventNames,
} from "../../../client/src/values.ts";
import { type DeliveryFilters, type EventFilters, idOf } from "../data/address-filters.ts";
import { withQuery } from "../data/route.ts";
import { Menu } from "./menu.tsx";

/* The filters of a list. They are kept in the address, so that a link, a reload and the back button keep them. */

interface BarProps<Filters> {
  /** The address of the list without filters. */
  href: string;
  filters: Filters;
}

export function DeliveryFilterBar({ href, filters }: BarProps<DeliveryFilters>) {
  const set = setterOf(href, filters);
  return (
    <FilterMenu label="Filter deliveries" href={href} count={Object.keys(filters).length}>
      <Select label="Status" values={deliveryStatuses} value={filters.status} onChange={(status) => set({ status })} />
      <Select label="Event" values={webhookEventNames} value={filters.event} onChange={(event) => set({ event })} />
      <Select
        label="Error"
        values={deliveryErrorCodes}
        value={filters.error_code}
        onChange={(error_code) => set({ error_code })}
        labelOf={(code: DeliveryErrorCode) => `${code}: ${deliveryErrorMeanings[code]}`}
      />
      <TimeField label="Since" value={filters.since} onChange={(since) => set({ since })} />
      <TimeField label="Until" value={filters.until} onChange={(until) => set({ until })} />
      <DeploymentSearch value={filters.deployment_id} onChange={(deployment_id) => set({ deployment_id })} />
    </FilterMenu>
  );
}

export function EventFilterBar({ href, filters }: BarProps<EventFilters>) {
  const set = setterOf(href, filters);
  return (
    <FilterMenu label="Filter events" href={href} count={Object.keys(filters).length}>
      <Select label="Event" values={eventNames} value={filters.event} onChange={(event) => set({ event })} />
      <DeploymentSearch value={filters.deployment_id} onChange={(deployment_id) => set({ deployment_id })} />
    </FilterMenu>
  );
}

interface FilterMenuProps {
  label: string;
  href: string;
  /** How many filters are set. */
  count: number;
  children: ComponentChildren;
}

/** The fields in a menu, so that the page begins with the list. Filters that are set are counted beside them. */
const FilterMenu = ({ label, href, count, children }: FilterMenuProps) => (
  <search class="filters" aria-label={label}>
    {count > 0 && <a href={href}>Clear filters</a>}
    <Menu label={count > 0 ? `Filter: ${count}` : "Filter"} stays>
      {children}
    </Menu>
  </search>
);

/** Returns a function that opens the list with changed filters. */
function setterOf<Filters extends Partial<Record<keyof Filters, string>>>(href: string, filters: Filters) {
  return (changed: { [Name in keyof Filters]?: Filters[Name] | undefined }) => {
    location.hash = withQuery(href, { ...filters, ...changed });
  };
}

interface SelectProps<Value extends string> {
  label: string;
  values: readonly Value[];
  /** Undefined = all. */
  value: Value | undefined;
  onChange(value: NoInfer<Value> | undefined): void;
  labelOf?: (value: NoInfer<Value>) => string;
}

function Select<Value extends string>({ label, values, value, onChange, labelOf }: SelectProps<Value>) {
  return (
    <label>
      <span>{label}</span>
      <select
        value={value ?? ""}
        onChange={({ currentTarget }) => onChange(values.find((each) => each === currentTarget.value))}
      >
        <option value="">all</option>
        {values.map((each) => (
          <option key={each} value={each}>
            {labelOf?.(each) ?? each}
          </option>
        ))}
      </select>
    </label>
  );
}

interface FieldProps {
  value: string | undefined;
  onChange(value: string | undefined): void;
}

/** Finds one deployment by its full id: the API has no search by a part of it. */
function DeploymentSearch({ value, onChange }: FieldProps) {
  const id = useId();
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const isWrong = text.trim() !== "" && idOf(text) === undefined;
  const [isChecked, setChecked] = useState(false);
  function apply(): void {
    setChecked(true);
    if (!isWrong) onChange(idOf(text));
  }
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <label for={id}>Deployment</label>
      <input
        id={id}
        type="search"
        placeholder="full id"
        autoComplete="off"
        spellcheck={false}
        value={text}
        aria-invalid={isChecked && isWrong}
        aria-describedby={isChecked && isWrong ? `${id}-problem` : undefined}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setChecked(false);
          // The field's own clear button.
          if (currentTarget.value === "" && value !== undefined) onChange(undefined);
        }}
      />
      <button type="submit" class="plain small">
        Search
      </button>
      {isChecked && isWrong && (
        <p class="problem" id={`${id}-problem`} role="alert">
          Not a deployment id. Paste the full id.
        </p>
      )}
    </form>
  );
}

function TimeField({ label, value, onChange }: FieldProps & { label: string }) {
  return (
    <label>
      <span>{label}</span>
      <input
        type="datetime-local"
        value={value === undefined ? "" : toLocalInput(new Date(value))}
        onChange={({ currentTarget }) => {
          const time = new Date(currentTarget.value);
          onChange(Number.isNaN(time.getTime()) ? undefined : time.toISOString());
        }}
      />
    </label>
  );
}

/** Formats a time for a `datetime-local` field: local time, to the minute. */
export function toLocalInput(time: Date): string {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
