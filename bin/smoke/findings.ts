/* How a check ends that does not simply hold. */

/** The stage does not keep a promise. The message tells which, what was wanted and what came. */
export class CheckFailed extends Error {
  override readonly name = "Unkept";
}

/**
 * A check that cannot be made here. The message tells why.
 * @param isExcused whether it may be so even when all checks are wanted: nobody could make it here, or what keeps it from
 * being made has been told already
 */
export class CheckSkipped extends Error {
  override readonly name = "NotHere";
  readonly isExcused: boolean;

  constructor(message: string, { isExcused = false } = {}) {
    super(message);
    this.isExcused = isExcused;
  }
}

/** There was no time left for a request, or somebody wants it to end. */
export class CheckInterrupted extends Error {
  override readonly name = "Stopped";
}

/** It works, and somebody should know all the same. */
export class CheckWarning extends Error {
  override readonly name = "Doubtful";
}
