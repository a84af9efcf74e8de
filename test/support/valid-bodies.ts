import { type EndpointRow, endpoints } from "../../functions/manifest/endpoints.ts";

interface ValidBody {
  body: Record<string, unknown>;
  /** The fields that may not be left out. */
  required: string[];
  /** The answer to it. */
  status: number;
}

/** A body that each endpoint with a body accepts, by the row's `file`. */
const validBodies: Record<string, ValidBody | "takes no body"> = {
  "api-keys/create": { body: { name: "ci" }, required: ["name"], status: 201 },
  "webhooks/create": {
    body: { url: "https://example.com/hook", events: ["deploy.failed"] },
    required: ["url", "events"],
    status: 201,
  },
  "webhooks/update": { body: { url: "https://example.com/other" }, required: [], status: 200 },
  "webhooks/rotate-secret": { body: { overlap_seconds: 0 }, required: [], status: 200 },
  "deliveries/send-test-delivery": { body: { event: "deploy.failed" }, required: [], status: 202 },
  "deliveries/recover": { body: { since: "2026-03-01T12:00:00Z" }, required: ["since"], status: 202 },
  "deliveries/redeliver": "takes no body",
};

const rows: readonly EndpointRow[] = endpoints;

/** The rows that take a body. A new one without an example above is an error. */
export const rowsWithBody = rows
  .filter(({ method }) => method === "POST" || method === "PATCH")
  .flatMap((row) => {
    const example = validBodies[row.file];
    if (!example) throw new Error(`test/support/valid-bodies.ts has no body for ${row.file}`);
    return example === "takes no body" ? [] : [{ ...row, example }];
  });

/** The JSON of the row's example; undefined for a row without a body. */
export function validBodyOf({ file }: EndpointRow): string | undefined {
  const example = validBodies[file];
  return typeof example === "object" ? JSON.stringify(example.body) : undefined;
}
