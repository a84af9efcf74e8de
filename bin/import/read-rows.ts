import { open } from "node:fs/promises";
import { canonicalUuid } from "../../functions/platform/uuid.ts";
import { StartError } from "../local/start-error.ts";

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
      if (trimmed !== "") yield { line, row: parsed(trimmed) };
    }
  } catch (error) {
    throw new StartError(`line ${line + 1}: The file cannot be read: ${(error as Error).message}.`);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Divides the rows of a file into batches. */
export async function* batchesOf(file: string): AsyncGenerator<Batch> {
  let batch: Batch = { rows: [], lines: [] };
  for await (const { line, row } of linesOf(file)) {
    batch.rows.push(row);
    batch.lines.push(line);
    if (batch.rows.length < ROWS_PER_CALL) continue;
    yield batch;
    batch = { rows: [], lines: [] };
  }
  if (batch.rows.length > 0) yield batch;
}

/**
 * Divides the members of a file into pages that begin with a new project. Together they cover all projects.
 * @throws StartError when the projects are not in the order of their ids, or a line names none
 */
export async function* memberPagesOf(file: string): AsyncGenerator<Batch> {
  let page: Batch = { rows: [], lines: [] };
  let last = "";
  for await (const { line, row } of linesOf(file)) {
    const project = canonicalUuid(Object(row).project_id);
    if (project === undefined) throw new StartError(`line ${line}: It has no project_id that is a UUID.`);
    if (project < last) throw new StartError(`line ${line}: The members must be in the order of project_id.`);
    if (project > last && page.rows.length >= MIN_MEMBERS_PER_PAGE) {
      yield { ...page, until: last };
      page = { rows: [], lines: [], after: last };
    }
    page.rows.push(row);
    page.lines.push(line);
    last = project;
  }
  // It would remove every member of the stage.
  if (last === "") throw new StartError("line 1: The file has no members.");
  yield page;
}
