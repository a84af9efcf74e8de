import { useId } from "preact/hooks";
import { ApiError } from "../../../client/src/errors.ts";

/* The fields of forms. */

interface FieldProps {
  label: string;
  hint?: string;
  /** The field's name in the API, which the details of an error contain. */
  path: string;
  error: Error | undefined;
  value: string;
  onInput(value: string): void;
  type?: "text" | "url" | "datetime-local";
  maxLength?: number;
  isOptional?: boolean;
  /** Absent = one line. */
  rows?: number;
  /** Values that the browser offers. */
  suggestions?: readonly string[];
}

export function Field(props: FieldProps) {
  const { label, hint, path, error, value, onInput, type = "text", maxLength, isOptional, rows, suggestions } = props;
  const id = useId();
  const problem = problemAt(error, path);
  // Preact's types have one set of attributes for each type of input.
  const typeAttribute = { type } as { type: "text" };
  const descriptions = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ");
  const attributes = {
    id,
    value,
    required: !isOptional,
    maxLength,
    autoComplete: "off" as const,
    spellcheck: false,
    list: suggestions && `${id}-list`,
    "aria-invalid": problem !== undefined,
    "aria-describedby": descriptions || undefined,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id}>
        {label} {isOptional && <span class="fine">optional</span>}
      </label>
      {rows === undefined ? <input {...typeAttribute} {...attributes} /> : <textarea {...attributes} rows={rows} />}
      {suggestions && (
        <datalist id={`${id}-list`}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
      {hint && (
        <p class="fine" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem && (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}

/** The API's message about one field. */
function problemAt(error: Error | undefined, path: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const message = error.details.find((detail) => isAbout(detail.path, path))?.message;
  return message && message.charAt(0).toUpperCase() + message.slice(1);
}

/** Returns whether the path of a detail is that of a field, or of a part of it. */
export const isAbout = (path: string, field: string): boolean => path === field || path.startsWith(`${field}.`);

interface RadioGroupProps<Value extends string> {
  legend: string;
  values: readonly Value[];
  chosen: Value;
  onChange(value: NoInfer<Value>): void;
  labelOf?: (value: NoInfer<Value>) => string;
}

/** @param labelOf absent = the value itself, as code */
export function RadioGroup<Value extends string>({
  legend,
  values,
  chosen,
  onChange,
  labelOf,
}: RadioGroupProps<Value>) {
  const name = useId();
  return (
    <fieldset class="field">
      <legend>{legend}</legend>
      {values.map((value) => (
        <label class="option" key={value}>
          <input type="radio" name={name} checked={value === chosen} onChange={() => onChange(value)} />
          {labelOf ? labelOf(value) : <code>{value}</code>}
        </label>
      ))}
    </fieldset>
  );
}
