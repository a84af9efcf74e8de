/**
 * The time that an attempt can need when DynamoDB and SQS are slow: the reads 9 s, the request 15 s, its record and what
 * follows 18 s. With less time left it is not begun: Lambda would stop it after the request, and the request would be
 * repeated.
 */
const MIN_ATTEMPT_MS = 45_000;

/** @param remainingMs returns the time until Lambda stops the function */
export const hasTimeToAttempt = (remainingMs: () => number): boolean => remainingMs() >= MIN_ATTEMPT_MS;
