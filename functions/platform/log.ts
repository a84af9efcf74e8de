/**
 * Structured log lines. On AWS the runtime's JSON log format turns each into one JSON object with time, level and request
 * id. Log ids and outcomes; never bodies, headers, tokens, keys or secrets.
 */
type Fields = Record<string, string | number | boolean | undefined>;
type Level = "info" | "warn" | "error";

/** Where lines go: the console, which the Lambda runtime formats. Local runs put a file here. */
export const logSink = {
  write: (level: Level, line: { message: string }): void => console[level](line),
};

export const log = {
  info: (message: string, fields?: Fields): void => logSink.write("info", { message, ...fields }),
  warn: (message: string, fields?: Fields): void => logSink.write("warn", { message, ...fields }),
  error: (message: string, error: unknown, fields?: Fields): void =>
    logSink.write("error", { message, ...fields, ...{ error: describe(error) } }),
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
