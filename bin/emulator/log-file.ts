import { closeSync, createWriteStream, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { unusableDataDir } from "../command/settings.ts";

/**
 * Writes the log lines of a local run to a file, one JSON object per line, and leaves the terminal to the start page. A
 * terminal or pipe that no one reads would fill up and stop the service. A full disk does not: lines are lost until it has room.
 * @returns the file's path, and whether there was none
 * @throws SettingError when the file cannot be written
 */
export function logToFile(dataDir: string): { path: string; isNew: boolean } {
  const path = join(dataDir, "service.log");
  const isNew = !existsSync(path);
  try {
    closeSync(openSync(path, "a", 0o600));
  } catch (error) {
    throw unusableDataDir(dataDir, error);
  }
  // Appended, never emptied: another service may be writing to it.
  const open = () => createWriteStream(path, { flags: "a" }).on("error", reopen);
  let hasFailed = false;
  const reopen = ({ message }: Error) => {
    if (!hasFailed) console.error(`The log ${path} is incomplete: ${message}`);
    hasFailed = true;
    file = open();
  };
  let file = open();
  logSink.write = (level, line) =>
    file.write(`${JSON.stringify({ time: new Date().toISOString(), level, ...line })}\n`);
  return { path, isNew };
}
