const BASE_MS = 20;
const MAX_MS = 500;

/**
 * Returns the delay before a retry of a DynamoDB call: exponential with full jitter.
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 * @param retry number of the retry, from 0
 * @param random a random number from 0 to 1
 * @returns milliseconds, less than 500
 */
export const backoffMs = (retry: number, random: number): number => random * Math.min(BASE_MS * 2 ** retry, MAX_MS);
