import * as z from "zod/mini";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { fields, listOf, parse } from "./input.ts";

/** What became of the rows of an import. */
export interface ImportResult {
  /** In a dry run, the number that would be imported. */
  imported: number;
  unchanged: number;
  refused: { index: number; reason: string }[];
}

/** A row whose values are valid. */
export interface Row<Values> {
  index: number;
  values: Values;
}

const MAX_ROWS = 1_000;

/** The rows of one call. Each is checked by itself, so that one that is refused does not affect the others. */
export const rowList = listOf(z.unknown(), MAX_ROWS);

/** The fields of a row. `null`, which databases export, is the same as absent in those that are optional. */
export function rowFields<Shape extends Record<string, z.ZodMiniType>>(shape: Shape) {
  const inRow = Object.entries(shape).map(([name, schema]) => [
    name,
    schema instanceof z.ZodMiniOptional ? z.pipe(z.nullish(schema), noNull) : schema,
  ]);
  return fields(Object.fromEntries(inRow) as Shape);
}

const noNull = z.transform((value) => value ?? undefined);

/**
 * Parses each row and imports those that are valid.
 * @param run imports them, and counts them in the result; `forRow` refuses one
 */
export async function importRows<Schema extends z.ZodMiniType>(
  rows: unknown[],
  schema: Schema,
  isDryRun: boolean,
  run: (rows: Row<z.output<Schema>>[], result: ImportResult) => Promise<unknown>,
): Promise<ImportResult> {
  const result: ImportResult = { imported: 0, unchanged: 0, refused: [] };
  const valid: Row<z.output<Schema>>[] = [];
  for (const [index, row] of rows.entries()) {
    await forRow(result, index, () => void valid.push({ index, values: parse(schema, row) }));
  }
  await run(valid, result);
  result.refused.sort((a, b) => a.index - b.index);
  if (!isDryRun) log.info("rows imported", { ...result, refused: result.refused.length });
  return result;
}

/** Runs a step for the row with this index. An error that is about the row refuses it. */
export async function forRow(
  { refused }: Pick<ImportResult, "refused">,
  index: number,
  step: () => Promise<void> | void,
): Promise<void> {
  try {
    await step();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refused.push({ index, reason: reasonOf(error) });
  }
}

const reasonOf = ({ message, details = [] }: ApiError): string =>
  details.map(({ path, message }) => (path === "" ? `the row ${message}` : `${path} ${message}`)).join("; ") || message;
