/** A condition that the operator has to fix before the program can run. The message says what happened and what to do. */
export class StartError extends Error {
  override readonly name = "StartError";
}
