const PARENT_CHECK_MS = 250;
/** On Ctrl-C the terminal signals this process and npm, and npm forwards its signal: a second one this soon is that copy. */
const ECHO_MS = 500;
const NOTICE_AFTER_MS = 1_500;

/**
 * Stops the service on SIGINT or SIGTERM; a second signal ends the process at once. Under npm, or under `bin/run.cjs` that handed
 * over to another Node, it also stops when the parent process ends: a killed `npm start` must not leave a service behind
 * that holds the port.
 */
export function stopOnSignal(stop: () => Promise<void>): void {
  let stoppingSince: number | undefined;
  const end = () => {
    if (stoppingSince !== undefined) {
      if (Date.now() - stoppingSince > ECHO_MS) process.exit(130);
      return;
    }
    stoppingSince = Date.now();
    const message = "\nWaiting for requests and deliveries in flight. Press Ctrl-C again to stop at once.";
    setTimeout(() => console.error(message), NOTICE_AFTER_MS).unref();
    stop().then(
      () => {
        console.error("\nStopped.");
        process.exit(0);
      },
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
  const { npm_lifecycle_event, STARTED_BY_OTHER_NODE } = process.env;
  if (npm_lifecycle_event !== undefined || STARTED_BY_OTHER_NODE !== undefined) {
    const parent = process.ppid;
    setInterval(() => process.ppid !== parent && stoppingSince === undefined && end(), PARENT_CHECK_MS).unref();
  }
}
