import { InvalidArgumentError, Option } from "commander";

/** Creates an option for several names: `--events a b`, `--events a,b` and `--events a --events b` are the same. */
export const namesOption = <Name extends string>(flags: string, description: string, valid: readonly Name[]): Option =>
  new Option(flags, description)
    .choices(valid)
    .argParser((text, previous: Name[] = []) => [
      ...new Set([...previous, ...text.split(",").map((part) => nameIn(valid, part.trim()))]),
    ]);

/** @throws InvalidArgumentError for another name */
function nameIn<Name extends string>(valid: readonly Name[], text: string): Name {
  const name = valid.find((known) => known === text);
  if (name !== undefined) return name;
  // The name of an option takes all words up to the next option.
  throw new InvalidArgumentError(
    text.includes("://") ? "Pass the URL before this option." : `Valid: ${valid.join(", ")}.`,
  );
}
