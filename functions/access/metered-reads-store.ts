import { QueryCommand, type QueryCommandInput, type QueryCommandOutput } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import {
  budgetExceeded,
  budgetWindowAt,
  FREE_READ_UNITS,
  MAX_PAGE_READ_UNITS,
  READ_BUDGET,
  READ_BUDGET_USED,
  READ_WINDOW_SECONDS,
} from "./request-budget.ts";
import { charge, usedBy } from "./request-budget-store.ts";

/** A query whose size the meter may reduce: `Limit` is the rows that the caller wants. */
export type LimitedQuery = QueryCommandInput & { Limit: number };

/**
 * Runs the queries of one request and counts the read units that they consume. A request that stays within the free units
 * costs no write. Any other reserves a whole page of the project's read budget before it reads on, and returns what it has
 * not used at its end. So concurrent requests exceed the budget by their first queries only, which are not reserved.
 * @throws ApiError `rate_limited` with `Retry-After` when the budget does not cover a page
 */
export async function meteredReads<Result>(
  projectId: string,
  now: Date,
  read: (reads: MeteredReads) => Promise<Result>,
): Promise<Result> {
  const reads = new MeteredReads(projectId, now);
  await reads.requireBudget();
  const result = await read(reads);
  await reads.settle();
  return result;
}

export class MeteredReads {
  readonly #spender: string;
  readonly #window;
  /** Units consumed, and those that the queries in flight are expected to consume. */
  #units = 0;
  /** Of the queries that have ended. */
  #consumed = { units: 0, rows: 0 };
  /** The query in flight, until one has returned a row. */
  #probe: Promise<unknown> | undefined;
  #reservation: Promise<void> | undefined;

  constructor(projectId: string, now: Date) {
    this.#window = budgetWindowAt(now, READ_WINDOW_SECONDS);
    this.#spender = `reads:${projectId}`;
  }

  /** Rows that the page may still read, as far as the size of those before them shows. A query would still read one row. */
  get rowsLeft(): number {
    return this.#rowsFor(MAX_PAGE_READ_UNITS);
  }

  /** Before the first row, it is taken for one unit: 4 KB, or 8 KB if the query is eventually consistent. */
  get #unitsPerRow(): number {
    const { units, rows } = this.#consumed;
    return rows === 0 ? 1 : units / rows;
  }

  #rowsFor(units: number): number {
    return Math.floor((units - this.#units) / this.#unitsPerRow);
  }

  /** Rejects a request whose budget is used up before it reads anything: even the first query may read a megabyte. */
  async requireBudget(): Promise<void> {
    const used = await usedBy(this.#spender, this.#window);
    if (used > READ_BUDGET - MAX_PAGE_READ_UNITS) throw budgetExceeded(READ_BUDGET_USED, this.#window);
  }

  /**
   * Runs a query for at most `Limit` rows, and for as few as the units that are left allow, but at least one.
   * @param sharers number of queries that share what is left, this one included
   */
  async query(input: LimitedQuery, sharers = 1): Promise<QueryCommandOutput> {
    // One at a time until the rows of one show how many the others may read.
    while (this.#probe !== undefined) {
      const probe = this.#probe;
      await probe.catch(() => undefined);
      if (this.#probe === probe) this.#probe = undefined;
    }
    const ended = this.#query(input, sharers);
    if (this.#consumed.rows === 0) this.#probe = ended;
    return ended;
  }

  async #query(input: LimitedQuery, sharers: number): Promise<QueryCommandOutput> {
    const isFree = this.#reservation === undefined && this.#rowsFor(FREE_READ_UNITS) >= 1;
    const left = isFree ? this.#rowsFor(FREE_READ_UNITS) : Math.floor(this.rowsLeft / sharers);
    const Limit = Math.min(input.Limit, Math.max(1, left));
    const expected = Limit * this.#unitsPerRow;
    this.#units += expected;
    if (!isFree) await this.#reserve();
    const output = await dynamo().send(new QueryCommand({ ...input, Limit, ReturnConsumedCapacity: "TOTAL" }));
    const consumed = output.ConsumedCapacity?.CapacityUnits ?? 0;
    this.#units += consumed - expected;
    this.#consumed = { units: this.#consumed.units + consumed, rows: this.#consumed.rows + (output.ScannedCount ?? 0) };
    return output;
  }

  #reserve(): Promise<void> {
    this.#reservation ??= charge(this.#spender, MAX_PAGE_READ_UNITS, this.#window, {
      limit: READ_BUDGET,
      used: READ_BUDGET_USED,
    });
    return this.#reservation;
  }

  /** Charges what was consumed, as far as it was not reserved: a query may have consumed more than expected. */
  async settle(): Promise<void> {
    const reserved = this.#reservation === undefined ? 0 : MAX_PAGE_READ_UNITS;
    const rest = this.#units - reserved;
    if (reserved > 0 || rest > FREE_READ_UNITS) await charge(this.#spender, rest, this.#window);
  }
}
