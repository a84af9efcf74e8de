const PARENT_CHECK_MS = 250;
/** On Ctrl-C the terminal signals us and npm, and npm passes its signal on: the second of the two is no impatience. */
const ECHO_MS = 500;

/**
 * Ends the process cleanly on Ctrl-C or a TERM signal; the second one ends it at once. Under npm it also ends when npm is
 * gone: a killed `npm start` must not leave a service behind that holds the port.
 */
export function stopOnSignal(stop: () => Promise<void>): void {
  let stoppingSince: number | undefined;
  const end = () => {
    if (stoppingSince !== undefined) {
      if (Date.now() - stoppingSince > ECHO_MS) process.exit(130);
      return;
    }
    stoppingSince = Date.now();
    const patience = setTimeout(() => console.error("\nFinishing what is in work. Ctrl-C again ends at once."), 1_500);
    patience.unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid;
    setInterval(() => process.ppid !== parent && stoppingSince === undefined && end(), PARENT_CHECK_MS).unref();
  }
}
