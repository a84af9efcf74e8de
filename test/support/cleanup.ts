/*
 * Closes the servers and processes that a test file opened, even when its own `afterAll` failed. Otherwise they would
 * keep Jest from ending after a failure.
 */

const opened = new Set<() => unknown>();

/**
 * Registers a close function. Jest runs it after the file's tests and before the file's own `afterAll`.
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
  // In reverse order of opening, so that a client is closed before its server.
  for (const close of [...opened].reverse()) await close();
});
