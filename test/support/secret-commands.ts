/**
 * The commands of `svc` that print a secret which is shown only once. Each has a row in svc-output.test.ts, which runs it with a
 * stdout that cannot be written.
 */
export const secretCommands = [
  "keys create",
  "keys roll",
  "service-accounts create-key",
  "service-accounts roll-key",
  "webhooks create",
  "webhooks rotate",
  "apply",
] as const;
