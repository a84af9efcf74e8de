import { ApiError } from "../platform/errors.ts";

/** What became of the rows of an import. */
export interface ImportResult {
  /** In a dry run, the number that would be imported. */
  imported: number;
  unchanged: number;
  refused: { index: number; reason: string }[];
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
