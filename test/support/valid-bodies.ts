import type { EndpointRow } from "../../functions/foundation/manifest/endpoints.ts";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { document, type Json } from "./api-contract.ts";

/*
 * A valid body for each endpoint, taken from its example in docs/openapi.json. The contract test checks these examples.
 */

interface ValidBody {
  body: Record<string, unknown>;
  /** Names of the required fields. */
  required: string[];
  /** Status of the response to the body. */
  status: number;
}

function documented({ method, path }: EndpointRow): Json {
  const operation: Json = document.paths[path]?.[method.toLowerCase()];
  if (!operation) throw new Error(`docs/openapi.json has no ${method} ${path}. Run: npm run openapi`);
  return operation;
}

/** Returns the documented status of a success. */
export const successStatusOf = (row: EndpointRow): number =>
  Number(Object.keys(documented(row).responses).find((each) => each.startsWith("2")));

function documentedBody(row: EndpointRow): ValidBody | undefined {
  const media = documented(row).requestBody?.content["application/json"];
  if (!media) return undefined;
  return { body: media.example, required: media.schema.required ?? [], status: successStatusOf(row) };
}

/** The rows that accept a body, each with a valid one. */
export const rowsWithBody = endpointRows.flatMap((row) => {
  const example = documentedBody(row);
  return example ? [{ ...row, example }] : [];
});

/** Returns a valid body as JSON; undefined = the endpoint has none. */
export function validBodyOf(row: EndpointRow): string | undefined {
  const example = documentedBody(row);
  return example && JSON.stringify(example.body);
}
