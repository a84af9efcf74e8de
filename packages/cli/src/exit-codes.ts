/** What `svc` ends with. Codes are for scripts, and stay. */
export const exitCodes = {
  ok: 0,
  /** Refused by the service, or what was asked about is not so: a signature does not hold, a delivery failed. */
  failed: 1,
  /** Called in a way it does not understand, or that is not safe without a person at the keyboard. */
  usage: 2,
  /** No credential, or one that is not accepted (401). */
  signedOut: 3,
  /** What was named is not there (404). */
  notFound: 4,
  /** Rate limited, down or out of reach: the same call may work later (429, 5xx, no connection). */
  unavailable: 5,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodesHelp = `Exit codes:
  0  done
  1  refused, or not so: a signature that does not hold, a delivery that failed
  2  called wrongly
  3  not signed in, or the credential is not accepted
  4  not found
  5  rate limited, down or out of reach: try again later`;

/** What ends a command early, to be told in a sentence. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;
  /** What to do about it. */
  readonly advice: string | undefined;

  constructor(exitCode: ExitCode, message: string, advice?: string) {
    super(message);
    this.exitCode = exitCode;
    this.advice = advice;
  }
}

export const usageError = (message: string, advice?: string): CommandError =>
  new CommandError(exitCodes.usage, message, advice);
