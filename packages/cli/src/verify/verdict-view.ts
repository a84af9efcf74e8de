import { styled } from "../terminal/terminal.ts";
import type { Verdict } from "./diagnose.ts";

/** A verdict in `--json`. The names are API. */
export interface VerdictRecord {
  header: string;
  holds: boolean;
  secret: number | null;
  remarks: { code: string; says: string; fix: string }[];
}

export const toVerdictRecord = ({ header, isValid, secretNumber, findings }: Verdict): VerdictRecord => ({
  header,
  holds: isValid,
  secret: secretNumber,
  remarks: findings.map(({ code, message, fix }) => ({ code, says: message, fix })),
});

/** @param secretCount the number of secrets that were tried */
export const formatVerdict =
  (secretCount: number) =>
  ({ header, isValid, secretNumber, findings }: Verdict): string => {
    const result = isValid ? styled("green", "✔ valid") : styled("red", "✘ invalid");
    const signer = secretNumber !== null && secretCount > 1 ? `, secret ${secretNumber} of ${secretCount}` : "";
    const lines = findings.flatMap(({ message, fix }) => [`    ${message}`, `    ${styled("dim", `→ ${fix}`)}`]);
    return [`${header.padEnd("X-Service-Signature".length)}  ${result}${signer}`, ...lines].join("\n");
  };
