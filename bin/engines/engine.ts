import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** A program that others wrote and that checks the service, or stands in for a part of AWS. `npm test` does not use it. */
export interface Engine {
  /** What it shows, for the help page: less than a line. */
  summary: string;
  /** Programs that must be in PATH. Without one of them the engine is skipped. */
  programs: readonly string[];
  /** Command that installs them. */
  install: string;
  /**
   * Prints what it counts and finds. Ends everything that it starts.
   * @throws StartError when the engine disagrees with the service
   */
  run(): Promise<void>;
}

/** Returns the sentence that says why the engine is skipped; undefined = its programs are installed. */
export function skipReason({ programs, install }: Engine, path = process.env.PATH ?? ""): string | undefined {
  const missing = programs.filter(
    (program) => !path.split(delimiter).some((folder) => isProgram(join(folder, program))),
  );
  if (missing.length === 0) return undefined;
  return `Skipped, because ${missing.join(" and ")} is not in PATH: install it with ${install}`;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
