import { useId, useState } from "preact/hooks";
import { formatLabels, formatOfUrl, type ProductFormat } from "../../../../functions/webhooks/formats/format-of-url.ts";
import type { Webhook } from "../../../client/src/client.ts";
import { Select } from "./choices.tsx";
import { Field } from "./fields.tsx";

/* In which form a webhook gets its events, with which headers, and which of them. */

type Format = keyof typeof formatLabels;
type Initial = Pick<Webhook, "format" | "header_names" | "signatures" | "delivery" | "settle_seconds">;

/** The fields of the API that a user has changed. */
export interface DeliveryFields {
  format?: Format;
  headers?: Record<string, string> | null;
  signatures?: Webhook["signatures"];
  delivery?: "every" | "latest";
  settle_seconds?: number;
}

/** @param url as it is in the form: the product behind it is proposed until the user chooses another format */
export function useDeliverySettings(initial: Initial, url: string) {
  const before: Format = initial.format ?? "standard";
  const [chosen, setFormat] = useState<Format | undefined>(initial.format);
  /** Undefined = those of the webhook stay. */
  const [headers, setHeaders] = useState<[name: string, value: string][] | undefined>();
  // The values of the headers that the webhook has are not known, and a change replaces all.
  const rows = headers ?? (initial.header_names ?? []).map((name): [string, string] => [name, ""]);
  const wasPublic = initial.signatures !== undefined;
  const [isPublic, setPublic] = useState(wasPublic);
  const [isLatest, setLatest] = useState(initial.delivery === "latest");
  const [settle, setSettle] = useState(String(initial.settle_seconds ?? 0));
  const product = formatOfUrl(url.trim());
  const format = chosen ?? product ?? before;
  const given = headers?.filter(([name, value]) => name.trim() !== "" || value !== "");
  const removesAll = given?.length === 0 && initial.header_names !== undefined;
  const fields: DeliveryFields = {
    ...(format !== before && { format }),
    ...(given &&
      given.length > 0 && { headers: Object.fromEntries(given.map(([name, value]) => [name.trim(), value])) }),
    ...(removesAll && { headers: null }),
    ...(isPublic !== wasPublic && { signatures: isPublic ? ["hmac", "ed25519", "http"] : ["hmac"] }),
    ...(isLatest !== (initial.delivery === "latest") && { delivery: isLatest ? "latest" : "every" }),
    ...(isLatest && settle !== String(initial.settle_seconds ?? 0) && { settle_seconds: Number(settle) }),
  };
  const choices = { isPublic, setPublic, isLatest, setLatest, settle, setSettle };
  return { initial, product, format, setFormat, headers, rows, setHeaders, ...choices, fields };
}

type DeliverySettingsProps = ReturnType<typeof useDeliverySettings> & { error: Error | undefined };

export function DeliverySettings({ product, format, setFormat, ...more }: DeliverySettingsProps) {
  return (
    <>
      <Select label="Format" labels={formatLabels} chosen={format} onChange={setFormat} />
      {product && format !== product && <Mismatch product={product} />}
      <MoreSettings {...more} />
    </>
  );
}

const Mismatch = ({ product }: { product: ProductFormat }) => (
  <p class="note warning" role="status">
    The URL is one of {formatLabels[product]}, which accepts no other format.
  </p>
);

type MoreSettingsProps = Omit<DeliverySettingsProps, "product" | "format" | "setFormat">;

function MoreSettings({
  initial,
  headers,
  rows,
  setHeaders,
  isPublic,
  setPublic,
  isLatest,
  setLatest,
  settle,
  setSettle,
  error,
}: MoreSettingsProps) {
  const kept = initial.header_names ?? [];
  const isUsed = kept.length > 0 || headers !== undefined || initial.delivery !== undefined || isPublic;
  return (
    <details class="field" open={isUsed}>
      <summary>Headers, signatures, and only the latest state</summary>
      {headers === undefined && kept.length > 0 ? (
        <p>
          Requests have <code>{kept.join(", ")}</code>. The values are not shown.{" "}
          <button type="button" class="plain small" onClick={() => setHeaders(rows)}>
            Replace all headers
          </button>
        </p>
      ) : (
        <HeaderRows rows={rows} onChange={setHeaders} />
      )}
      <label class="option">
        <input type="checkbox" checked={isPublic} onChange={({ currentTarget }) => setPublic(currentTarget.checked)} />
        <span class="name">Public-key signatures too</span>{" "}
        <span class="fine">
          a receiver verifies them with the project's public key: it has no secret to store or to leak
        </span>
      </label>
      <label class="option">
        <input type="checkbox" checked={isLatest} onChange={({ currentTarget }) => setLatest(currentTarget.checked)} />
        <span class="name">Only the latest state</span>{" "}
        <span class="fine">an event is not sent once a newer one of its deployment exists</span>
      </label>
      {isLatest && (
        <Field
          label="Seconds that an event waits for a newer one"
          hint="0 to 60."
          path="settle_seconds"
          error={error}
          value={settle}
          onInput={setSettle}
          maxLength={2}
        />
      )}
    </details>
  );
}

const MAX_HEADERS = 5;

interface HeaderRowsProps {
  rows: [name: string, value: string][];
  onChange(rows: [name: string, value: string][]): void;
}

/** Names and values. The values are credentials: no page shows them. */
function HeaderRows({ rows, onChange }: HeaderRowsProps) {
  const id = useId();
  const set = (at: number, row: [string, string]) => onChange(rows.map((each, index) => (index === at ? row : each)));
  return (
    <fieldset class="field">
      <legend>Headers</legend>
      {rows.map(([name, value], index) => (
        <div class="header-row" key={`${id}-${index}`}>
          <input
            aria-label={`Name of header ${index + 1}`}
            placeholder="Authorization"
            autoComplete="off"
            spellcheck={false}
            maxLength={100}
            value={name}
            onInput={({ currentTarget }) => set(index, [currentTarget.value, value])}
          />
          <input
            aria-label={`Value of header ${index + 1}`}
            type="password"
            autoComplete="new-password"
            maxLength={2048}
            value={value}
            onInput={({ currentTarget }) => set(index, [name, currentTarget.value])}
          />
          <button
            type="button"
            class="plain small"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onChange(rows.filter((_, at) => at !== index))}
          >
            Remove
          </button>
        </div>
      ))}
      {rows.length < MAX_HEADERS && (
        <button type="button" class="plain small" onClick={() => onChange([...rows, ["", ""]])}>
          Add a header
        </button>
      )}
    </fieldset>
  );
}
