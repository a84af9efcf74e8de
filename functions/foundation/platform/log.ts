import { AsyncLocalStorage } from "node:async_hooks";
import { settings } from "./env.ts";
import { type DimensionsOf, dimensionsOf, embeddedMetrics, type MetricValues } from "./metrics.ts";

/**
 * Fields of a structured log line. They are top-level fields of one JSON object, so that one query finds all lines of a
 * request or a delivery. Log ids and outcomes; never bodies, headers, tokens, keys or secrets.
 */
type Fields = Record<string, string | number | boolean | undefined>;
type Level = "info" | "warn" | "error";
type Line = { message: string; [field: string]: unknown };

/**
 * The output of all log lines: standard output by default. Lines bypass `console`, because Lambda wraps console output
 * into a field `message`, where CloudWatch does not find embedded metrics. Level and time have the format that Lambda's
 * log level filter expects. Local runs and tests replace `write`.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
 */
export const logSink = {
  write(level: Level, line: Line): void {
    const stamp = { timestamp: new Date().toISOString(), level: level.toUpperCase() };
    process.stdout.write(`${JSON.stringify({ ...stamp, ...line })}\n`);
  },
};

interface Write {
  (message: string, fields?: Fields): void;
  /** Writes a line from which CloudWatch also extracts these metrics. */
  <Values extends MetricValues>(message: string, fields: Fields & DimensionsOf<Values>, measured: Values): void;
}

const scopes = new AsyncLocalStorage<Fields>();

interface MetricEntry {
  measured: MetricValues;
  dimensions: Record<string, unknown>;
}

const batches = new AsyncLocalStorage<MetricEntry[]>();

function write(level: Level, line: Line, measured?: MetricValues): void {
  const batch = batches.getStore();
  if (measured && batch) batch.push({ measured, dimensions: dimensionsOf(measured, line) });
  const metrics = measured && !batch ? embeddedMetrics([measured], settings.stage(), new Date()) : {};
  logSink.write(level, { ...line, ...metrics });
}

const writeAt =
  (level: Level): Write =>
  (message: string, fields?: Fields, measured?: MetricValues): void =>
    write(level, { message, ...scopes.getStore(), ...fields }, measured);

/** Writes one line of metrics for each combination of dimensions. */
function writeMetrics(batch: MetricEntry[]): void {
  for (const group of Map.groupBy(batch, ({ dimensions }) => JSON.stringify(dimensions)).values()) {
    const metrics = embeddedMetrics(
      group.map(({ measured }) => measured),
      settings.stage(),
      new Date(),
    );
    logSink.write("info", { message: "metrics", ...group[0]?.dimensions, ...metrics });
  }
}

export const log = {
  info: writeAt("info"),
  warn: writeAt("warn"),
  error: (message: string, error: unknown, fields?: Fields, measured?: MetricValues): void =>
    write("error", { message, ...scopes.getStore(), ...fields, error: describe(error) }, measured),
  /**
   * Runs a function and writes its metrics in separate lines at the end, one for each combination of dimensions. This
   * saves bytes, because the description of metrics is half of a line. When Lambda stops the function at its timeout,
   * the log lines have been written but the metrics are lost.
   */
  async batchMetrics<Result>(run: () => Promise<Result>): Promise<Result> {
    const batch: MetricEntry[] = [];
    try {
      return await batches.run(batch, run);
    } finally {
      writeMetrics(batch);
    }
  },
  /** Runs a function and adds these fields to all lines that it and its asynchronous work write. */
  scope: <Result>(fields: Fields, run: () => Result): Result => scopes.run({ ...fields }, run),
  /** Adds fields to the following lines of the current scope. */
  tag(fields: Fields): void {
    Object.assign(scopes.getStore() ?? {}, fields);
  },
};

/**
 * Returns name, message and stack of an error and of its causes, and no other property, because the SDK attaches
 * requests to its errors.
 */
function describe(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, stack } = error;
  return {
    name,
    message,
    stack,
    ...(error.cause !== undefined && depth < 3 && { cause: describe(error.cause, depth + 1) }),
  };
}
