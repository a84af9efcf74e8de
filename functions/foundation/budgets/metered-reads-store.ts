import { createHash } from "node:crypto";
import { QueryCommand, type QueryCommandInput, type QueryCommandOutput } from "@aws-sdk/lib-dynamodb";
import { callerOf, type Identity } from "../access/identity.ts";
import { dynamo } from "../platform/aws.ts";
import {
  budgetExceeded,
  budgetWindowAt,
  FREE_READ_UNITS,
  MAX_PAGE_READ_UNITS,
  PROJECT_READ_BUDGET,
  READ_BUDGET,
  READ_BUDGET_USED,
  READ_WINDOW_SECONDS,
} from "./request-budget.ts";
import { charge, usedBy } from "./request-budget-store.ts";

/** A query whose size the meter may reduce: `Limit` is the rows that the caller wants. */
export type LimitedQuery = QueryCommandInput & { Limit: number };

/** The rows of the first query: until it has returned, the size of the rows is not known, and each may have 272 KB. */
const MAX_FIRST_ROWS = 3;

/**
 * Runs the reads of one request and counts the read units that they consume. A request that stays within the free units
 * costs no write. Any other reserves a whole page of the read budget before it reads on, and returns what it has not used
 * at its end. So concurrent requests exceed the budget only by what each reads before its reservation, which is charged to
 * a request that is rejected too.
 * @param spender whose budget: that of a project, of which one caller can use half, or `user:<id>`
 * @throws ApiError `rate_limited` with `Retry-After` when the budget does not cover a page
 */
export async function meteredReads<Result>(
  spender: Spender,
  now: Date,
  read: (reads: MeteredReads) => Promise<Result>,
): Promise<Result> {
  const reads = new MeteredReads(spender, now);
  await reads.requireBudget();
  try {
    return await read(reads);
  } finally {
    await reads.settle();
  }
}

type Spender = `user:${string}` | { project: string; caller: Identity };

export class MeteredReads {
  readonly #spender: string;
  readonly #budget;
  readonly #window;
  /** Of the reads that have ended. */
  #consumed = { units: 0, rows: 0 };
  /** Units of a row, in the query with the largest ones; 0 before the first row. */
  #largestRow = 0;
  /** Units that the queries in flight are expected to consume. */
  #expected = 0;
  #reservation: Promise<void> | undefined;
  #reserved = 0;

  constructor(spender: Spender, now: Date) {
    this.#window = budgetWindowAt(now, READ_WINDOW_SECONDS);
    const isUser = typeof spender === "string";
    this.#spender = `reads:${isUser ? spender : spender.project}`;
    const limit = isUser ? READ_BUDGET : PROJECT_READ_BUDGET;
    this.#budget = { limit, used: READ_BUDGET_USED, share: isUser ? undefined : shareOf(spender.caller) };
  }

  /** Units that the page may still read. */
  get unitsLeft(): number {
    return MAX_PAGE_READ_UNITS - this.#units;
  }

  /** Rows that the page may still read if none is larger than those before them. A query would still read one row. */
  get rowsLeft(): number {
    return Math.floor(this.unitsLeft / (this.#largestRow || 1));
  }

  /** Rows that fit into the free units if they are as large as those before them on average. */
  get #freeRows(): number {
    return this.#reservation === undefined ? Math.floor((FREE_READ_UNITS - this.#units) / this.#unitsPerRow) : 0;
  }

  get #units(): number {
    return this.#consumed.units + this.#expected;
  }

  /** Before the first row, it is taken for one unit: 4 KB, or 8 KB if the query is eventually consistent. */
  get #unitsPerRow(): number {
    const { units, rows } = this.#consumed;
    return rows === 0 ? 1 : units / rows;
  }

  /** Rejects a request whose budget is used up before it reads anything. */
  async requireBudget(): Promise<void> {
    const { limit, used: message, share = "" } = this.#budget;
    const { used = 0, [share]: ofCaller = 0 } = await usedBy(this.#spender, this.#window);
    const hasRoom = used <= limit - MAX_PAGE_READ_UNITS && ofCaller <= limit / 2 - MAX_PAGE_READ_UNITS;
    if (!hasRoom) throw budgetExceeded(message, this.#window);
  }

  /** Runs a query for at most `Limit` rows, and for as few as the units that are left allow, but at least one. */
  async query(input: LimitedQuery): Promise<QueryCommandOutput> {
    const wanted = this.#consumed.rows === 0 ? Math.min(input.Limit, MAX_FIRST_ROWS) : input.Limit;
    const freeRows = this.#freeRows;
    const Limit = Math.min(wanted, Math.max(1, freeRows >= 1 ? freeRows : this.rowsLeft));
    const expected = Limit * this.#unitsPerRow;
    this.#expected += expected;
    try {
      if (freeRows < 1) await this.#reserve();
      const output = await dynamo().send(new QueryCommand({ ...input, Limit, ReturnConsumedCapacity: "TOTAL" }));
      this.#count(output.ConsumedCapacity?.CapacityUnits ?? 0, output.ScannedCount);
      return output;
    } finally {
      this.#expected -= expected;
    }
  }

  /**
   * Counts reads that are no queries, before they are made.
   * @param units known from the number and the largest size of the items
   */
  async add(units: number): Promise<void> {
    if (this.#units + units > FREE_READ_UNITS) await this.#reserve();
    this.#count(units);
  }

  #count(units: number, rows = 0): void {
    this.#consumed = { units: this.#consumed.units + units, rows: this.#consumed.rows + rows };
    if (rows > 0) this.#largestRow = Math.max(this.#largestRow, units / rows);
  }

  async #reserve(): Promise<void> {
    this.#reservation ??= charge(this.#spender, MAX_PAGE_READ_UNITS, this.#window, this.#budget);
    await this.#reservation;
    this.#reserved = MAX_PAGE_READ_UNITS;
  }

  /** Charges what was consumed, as far as it was not reserved: a query may have consumed more than expected. */
  async settle(): Promise<void> {
    const rest = this.#consumed.units - this.#reserved;
    if (this.#reserved > 0 || rest > FREE_READ_UNITS)
      await charge(this.#spender, rest, this.#window, this.#budget, true);
  }
}

/** Returns the name of a caller's counter: the id of a user may have characters that the name of an attribute must not. */
const shareOf = (caller: Identity): string => `by_${createHash("sha256").update(callerOf(caller)).digest("hex")}`;
