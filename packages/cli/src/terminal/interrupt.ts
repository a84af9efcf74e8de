/**
 * Runs a task that ends by itself, by Ctrl-C or by SIGTERM. An interrupted task has ended normally.
 * @param run receives a signal that is aborted on interruption; errors that it throws after that are ignored
 */
export async function runUntilInterrupted(run: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const interrupted = new AbortController();
  const stop = () => interrupted.abort();
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  try {
    await run(interrupted.signal);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  }
}
