/* The ways in which a check can end other than by passing. */

/** The stage breaks a documented behavior. The message states what was expected and what was received. */
export class CheckFailed extends Error {
  override readonly name = "CheckFailed";
}

/**
 * The check cannot run here. The message states why.
 * @param isExcused true = not a failure even with `--all`: the check can never run here, or the cause has already been
 * reported by an earlier check
 */
export class CheckSkipped extends Error {
  override readonly name = "CheckSkipped";
  readonly isExcused: boolean;

  constructor(message: string, { isExcused = false } = {}) {
    super(message);
    this.isExcused = isExcused;
  }
}

/** The run ended during the check: the time limit was reached, or the run was interrupted. */
export class CheckInterrupted extends Error {
  override readonly name = "CheckInterrupted";
}

/** The check passed, with a problem that the operator should know. */
export class CheckWarning extends Error {
  override readonly name = "CheckWarning";
}
