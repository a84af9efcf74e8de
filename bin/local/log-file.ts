import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { logSink } from "../../functions/platform/log.ts";

/**
 * Sends the log lines of a local run to a file, one JSON object per line, and leaves the terminal to the start page: whoever
 * started the service may have stopped reading its output, and a full pipe would stop the service.
 * @returns the file's path
 */
export function logToFile(dataDir: string): string {
  const path = join(dataDir, "service.log");
  // Added to, never emptied: another service may be writing to it.
  const file = createWriteStream(path, { flags: "a" });
  logSink.write = (level, line) =>
    file.write(`${JSON.stringify({ time: new Date().toISOString(), level, ...line })}\n`);
  return path;
}
