import { InvalidArgumentError, Option } from "commander";
import { permissions } from "../../../client/src/values.ts";

/**
 * Creates an option for several names: `--events a b`, `--events a,b` and `--events a --events b` are the same.
 * @param isOther whether a name that is not in the list is left to the service; default: none is
 */
export const namesOption = (
  flags: string,
  description: string,
  valid: readonly string[],
  isOther: (name: string) => boolean = () => false,
): Option =>
  new Option(flags, description).choices(valid).argParser((text, previous: string[] = []) => {
    const names = text.split(",").map((part) => part.trim());
    const unknown = names.find((name) => !valid.includes(name) && !isOther(name));
    if (unknown === undefined) return [...new Set([...previous, ...names])];
    // The name of an option takes all words up to the next option.
    throw new InvalidArgumentError(
      unknown.includes("://") ? "Pass the URL before this option." : `Valid: ${valid.join(", ")}.`,
    );
  });

/** Creates the option for permissions of this API, and for those that the platform adds, which only the service knows. */
export const permissionsOption = (description: string, own: readonly string[]): Option =>
  namesOption("--permission <names...>", description, own, (name) => {
    const [, resource] = /^([^:]+):[^:]+$/.exec(name) ?? [];
    return resource !== undefined && !permissions.some((each) => each.startsWith(`${resource}:`));
  });
