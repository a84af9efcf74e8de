/*
 * Closes what a test file opened, even when its own `afterAll` did not run to the end: a server or a process that stays open
 * would keep Jest from ending after a failure.
 */

const opened = new Set<() => unknown>();

/**
 * Registers a function that closes something. Jest runs it after the file's tests and before the file's own `afterAll`.
 * @returns a function that closes it now; further calls do nothing and return the same result
 */
export function closeAfterFile<Result>(close: () => Result): () => Result {
  let result: { value: Result } | undefined;
  const closeOnce = () => {
    opened.delete(closeOnce);
    result ??= { value: close() };
    return result.value;
  };
  opened.add(closeOnce);
  return closeOnce;
}

afterAll(async () => {
  // The last opened first: a client before its server.
  for (const close of [...opened].reverse()) await close();
});
