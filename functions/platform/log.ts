import { AsyncLocalStorage } from "node:async_hooks";
import { settings } from "./env.ts";
import { type DimensionsOf, dimensionsOf, embeddedMetrics, type Measured } from "./metrics.ts";

/**
 * Structured log lines: one JSON object each, with its fields at the top, so that one query finds all lines of a request or
 * a delivery. Log ids and outcomes; never bodies, headers, tokens, keys or secrets.
 */
type Fields = Record<string, string | number | boolean | undefined>;
type Level = "info" | "warn" | "error";
type Line = { message: string; [field: string]: unknown };

/**
 * Where lines go: standard output, as they are. What goes through the console Lambda puts into a field `message` of a line
 * of its own, where CloudWatch finds no metrics. Level and time are written as Lambda's log level filter wants them.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
 * Local runs put a file here.
 */
export const logSink = {
  write(level: Level, line: Line): void {
    const stamp = { timestamp: new Date().toISOString(), level: level.toUpperCase() };
    process.stdout.write(`${JSON.stringify({ ...stamp, ...line })}\n`);
  },
};

interface Write {
  (message: string, fields?: Fields): void;
  /** A line that is counted and timed as well: CloudWatch makes metrics of what was measured. */
  <Values extends Measured>(message: string, fields: Fields & DimensionsOf<Values>, measured: Values): void;
}

const scopes = new AsyncLocalStorage<Fields>();

interface Gathered {
  measured: Measured;
  dimensions: Record<string, unknown>;
}

const gatherings = new AsyncLocalStorage<Gathered[]>();

function write(level: Level, line: Line, measured?: Measured): void {
  const gathering = gatherings.getStore();
  if (measured && gathering) gathering.push({ measured, dimensions: dimensionsOf(measured, line) });
  const metrics = measured && !gathering ? embeddedMetrics([measured], settings.stage(), new Date()) : {};
  logSink.write(level, { ...line, ...metrics });
}

const writeAt =
  (level: Level): Write =>
  (message: string, fields?: Fields, measured?: Measured): void =>
    write(level, { message, ...scopes.getStore(), ...fields }, measured);

function writeGathered(gathering: Gathered[]): void {
  for (const group of Map.groupBy(gathering, ({ dimensions }) => JSON.stringify(dimensions)).values()) {
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
  error: (message: string, error: unknown, fields?: Fields, measured?: Measured): void =>
    write("error", { message, ...scopes.getStore(), ...fields, error: describe(error) }, measured),
  /**
   * Runs something whose lines leave what they measured to lines at the end, one for each combination of dimensions: what
   * describes the metrics is half of a line, and needed once. They come when all is done: of what is broken off (a Lambda
   * out of time) the lines are there, the metrics are not.
   */
  async gather<Result>(run: () => Promise<Result>): Promise<Result> {
    const gathering: Gathered[] = [];
    try {
      return await gatherings.run(gathering, run);
    } finally {
      writeGathered(gathering);
    }
  },
  /** Runs something whose lines all carry these fields, however deep below and however late they are written. */
  scope: <Result>(fields: Fields, run: () => Result): Result => scopes.run({ ...fields }, run),
  /** Adds what has become known to the lines that follow in this scope. */
  tag(fields: Fields): void {
    Object.assign(scopes.getStore() ?? {}, fields);
  },
};

/** Name, message and stack of an error and of its causes: what the operator needs, without the SDK's request objects. */
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
