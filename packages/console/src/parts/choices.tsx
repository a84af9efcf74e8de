import { useId, useState } from "preact/hooks";
import type { Permission, WebhookEventName } from "../../../client/src/client.ts";
import { permissionMeanings, webhookEventMeanings } from "../../../client/src/values.ts";
import { useLoaded } from "./use-loaded.ts";

/* Groups of choices in forms. */

interface CheckboxesProps<Value extends string> {
  legend: string;
  /** Whether only screen readers get the legend. */
  isLegendHidden?: boolean;
  /** In the order in which the chosen ones are returned. */
  values: readonly Value[];
  chosen: readonly Value[];
  onChange(chosen: NoInfer<Value>[]): void;
  labelOf: (value: NoInfer<Value>) => string;
  /** Explains a value. Absent = no explanations. */
  meaningOf?: (value: NoInfer<Value>) => string;
}

export function Checkboxes<Value extends string>(props: CheckboxesProps<Value>) {
  const { legend, isLegendHidden, values, chosen, onChange, labelOf, meaningOf } = props;
  const choose = (value: Value, isChosen: boolean) =>
    onChange(values.filter((each) => (each === value ? isChosen : chosen.includes(each))));
  return (
    <fieldset class="field">
      <legend class={isLegendHidden ? "visually-hidden" : undefined}>{legend}</legend>
      <div class="choices">
        {values.map((value) => (
          <label class="option" key={value}>
            <input
              type="checkbox"
              checked={chosen.includes(value)}
              onChange={({ currentTarget }) => choose(value, currentTarget.checked)}
            />
            <span class={meaningOf && "name"}>{labelOf(value)}</span>{" "}
            {meaningOf && <span class="fine">{meaningOf(value)}</span>}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface EventCheckboxesProps {
  chosen: WebhookEventName[];
  onChange(names: WebhookEventName[]): void;
}

const eventMeanings: Record<string, string> = {
  "*": "all events, also those to come",
  "deploy.*": "all of deployments, also those to come",
  ...webhookEventMeanings,
};

/** Offers patterns and the events that every platform has, and keeps others that the webhook has, or that are added by name. */
export function EventCheckboxes({ chosen, onChange }: EventCheckboxesProps) {
  const [added, setAdded] = useState<string[]>(() => chosen.filter((name) => !(name in eventMeanings)));
  const [text, setText] = useState("");
  const isName = /^[a-z]+(\.[a-z_]+)*(\.\*|\.[a-z_]+)$/.test(text.trim());
  const add = () => {
    setAdded([...new Set([...added, text.trim()])]);
    onChange([...new Set([...chosen, text.trim()])]);
    setText("");
  };
  return (
    <>
      <Checkboxes
        legend="Events"
        values={[...Object.keys(eventMeanings), ...added.filter((name) => !(name in eventMeanings))]}
        labelOf={(name) => name}
        meaningOf={(name) => eventMeanings[name] ?? ""}
        {...{ chosen, onChange }}
      />
      <details class="field">
        <summary>Another event of the platform</summary>
        <div class="header-row">
          <input
            aria-label="Name of an event, or a pattern"
            placeholder="deploy.canceled"
            autoComplete="off"
            spellcheck={false}
            maxLength={100}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          <button type="button" class="plain small" disabled={!isName} onClick={add}>
            Add
          </button>
        </div>
      </details>
    </>
  );
}

interface PermissionCheckboxesProps<Own extends Permission> {
  legend: string;
  /** The permissions of this API that are offered. */
  own: readonly Own[];
  chosen: readonly Own[];
  onChange(chosen: Own[]): void;
}

/** Offers permissions of this API, and those that the platform adds in this stage. */
export function PermissionCheckboxes<Own extends Permission>({ own, ...props }: PermissionCheckboxesProps<Own>) {
  const { data } = useLoaded("permissions", (client) => client.getCurrentCredential());
  const added = new Map(data?.platform_permissions?.map(({ name, description }) => [name, description]));
  return (
    <Checkboxes
      // The types of the API have no names that a stage adds.
      values={[...own, ...([...added.keys()] as Own[])]}
      labelOf={(value) => value}
      meaningOf={(value) => added.get(value) ?? permissionMeanings[value]}
      {...props}
    />
  );
}

interface SelectProps<Value extends string> {
  label: string;
  labels: Record<Value, string>;
  chosen: Value;
  onChange(value: NoInfer<Value>): void;
}

export function Select<Value extends string>({ label, labels, chosen, onChange }: SelectProps<Value>) {
  const id = useId();
  const values = Object.keys(labels) as Value[];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={chosen}
        onChange={({ currentTarget }) => onChange(values.find((each) => each === currentTarget.value) ?? chosen)}
      >
        {values.map((value) => (
          <option key={value} value={value}>
            {labels[value]}
          </option>
        ))}
      </select>
    </div>
  );
}
