import { paint } from "../terminal.ts";
import type { Verdict } from "./diagnose.ts";

/** @param secretCount how many secrets there were to choose from */
export const formatVerdict =
  (secretCount: number) =>
  ({ header, holds, secret, remarks }: Verdict): string => {
    const verdict = holds ? paint("green", "✔ holds") : paint("red", "✘ does not hold");
    const which = secret !== null && secretCount > 1 ? `, by secret ${secret} of ${secretCount}` : "";
    const lines = remarks.flatMap(({ says, fix }) => [`    ${says}`, `    ${paint("dim", `→ ${fix}`)}`]);
    return [`${header.padEnd("X-Service-Signature".length)}  ${verdict}${which}`, ...lines].join("\n");
  };
