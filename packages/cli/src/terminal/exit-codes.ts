/** Exit codes of `svc`. Scripts depend on them: never change one. */
export const exitCodes = {
  ok: 0,
  /** The service rejected the request, or a check failed: an invalid signature, a failed delivery. */
  failed: 1,
  /**
   * Wrong arguments, whether `svc` or the service recognizes them (`validation_error`), or a confirmation that was
   * declined or cannot be requested because stdin is not a terminal.
   */
  usage: 2,
  /** `svc apply --dry-run --exit-code`: something would change. */
  wouldChange: 2,
  /** No credential, or one that the service does not accept (401). */
  signedOut: 3,
  /** The named resource does not exist (404). */
  notFound: 4,
  /** Rate limited, down or unreachable (429, 5xx, no connection). The same call may work later. */
  unavailable: 5,
  /** What a command waits for did not happen in time. The exit code of timeout(1). */
  timeout: 124,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodesHelp = `Exit codes:
  0  success
  1  request rejected, check failed (invalid signature, failed delivery or deployment), or output not written
  2  usage error; svc apply --dry-run --exit-code: something would change
  3  not signed in, or the credential is not accepted
  4  not found
  5  rate limited, down or unreachable: try again later
  124  svc deployments wait: the deployment did not end in time`;

/** Ends a command with an exit code, a message and, optionally, advice on what to do. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;
  readonly advice: string | undefined;

  constructor(exitCode: ExitCode, message: string, advice?: string) {
    super(message);
    this.exitCode = exitCode;
    this.advice = advice;
  }
}

export const usageError = (message: string, advice?: string): CommandError =>
  new CommandError(exitCodes.usage, message, advice);
