import { usageError } from "./exit-codes.ts";

/** Reads the value of an option. @throws CommandError unless it is a whole number within the bounds */
export function readNumber(option: string, text: string, min: number, max: number): number {
  const number = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw usageError(`${option} must be a whole number from ${min} to ${max}.`);
}

/** Returns the parser of an option whose value is a whole number. */
export const numberParser = (option: string, min: number, max: number) => (text: string) =>
  readNumber(option, text, min, max);
