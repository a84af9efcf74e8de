/**
 * Runs what ends with Ctrl-C or a TERM signal, or by itself. Being interrupted is its proper end, not a failure.
 * @param run is told by the signal; what it throws once the signal is aborted counts for nothing
 */
export async function untilInterrupted(run: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
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
