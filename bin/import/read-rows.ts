import { open } from "node:fs/promises";
import { parseJson } from "../../functions/foundation/platform/parse-json.ts";
import { canonicalUuid } from "../../functions/foundation/platform/uuid.ts";
import { StartError } from "../command/start-error.ts";

/** Rows of a file that are sent together. */
export interface Batch {
  rows: unknown[];
  /** The line of each row, from 1. */
  lines: number[];
  /** Of members: the projects that the page covers, those after `after`, up to `until`; absent = without a bound. */
  after?: string;
  until?: string;
}

/** The limit of a call that imports keys or webhooks. */
const ROWS_PER_CALL = 1_000;
/** A page of members ends with a project, so it gets longer. */
const MIN_MEMBERS_PER_PAGE = 2_000;

/** Reads the lines of a file, without empty ones. A line that is not JSON is its text, which every function refuses. */
async function* linesOf(file: string): AsyncGenerator<{ line: number; row: unknown }> {
  let line = 0;
  try {
    for await (const text of (await open(file)).readLines()) {
      line += 1;
      // Also without the byte order mark that exports from Windows begin with.
      const trimmed = text.trim();
      if (trimmed !== "") yield { line, row: parseJson(trimmed) ?? trimmed };
    }
  } catch (error) {
    throw new StartError(`line ${line + 1}: The file cannot be read: ${(error as Error).message}.`);
  }
}

/**
 * Divides the rows of a file into batches. Those of members are pages that begin with a new project, and together cover all
 * projects.
 * @throws StartError when members are not in the order of their projects, a line names none, or there are no members
 */
export async function* batchesOf(file: string, areMembers: boolean): AsyncGenerator<Batch> {
  let batch: Batch = { rows: [], lines: [] };
  let last = "";
  for await (const { line, row } of linesOf(file)) {
    const project = areMembers ? projectOf(row, line, last) : undefined;
    const isFull = batch.rows.length >= (areMembers ? MIN_MEMBERS_PER_PAGE : ROWS_PER_CALL);
    if (isFull && project !== last) {
      yield areMembers ? { ...batch, until: last } : batch;
      batch = { rows: [], lines: [], ...(areMembers && { after: last }) };
    }
    batch.rows.push(row);
    batch.lines.push(line);
    last = project ?? "";
  }
  // It would remove every member of the stage.
  if (areMembers && last === "") throw new StartError("line 1: The file has no members.");
  if (batch.rows.length > 0) yield batch;
}

function projectOf(row: unknown, line: number, last: string): string {
  const project = canonicalUuid(Object(row).project_id);
  if (project === undefined) throw new StartError(`line ${line}: It has no project_id that is a UUID.`);
  if (project < last) throw new StartError(`line ${line}: The members must be in the order of project_id.`);
  return project;
}
