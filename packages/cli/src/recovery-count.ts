import { MAX_READ, type RecoveryCount } from "../../client/src/recovery-count.ts";

export { countRecoverable, MAX_READ, type RecoveryCount } from "../../client/src/recovery-count.ts";

/** `12 would be sent again: 10 failed, 2 held.` */
export function recoveryCountText({ count, failed, held, complete }: RecoveryCount): string {
  const parts = `${failed} failed, ${held} held`;
  if (complete) return `${count} would be sent again: ${parts}.`;
  return `At least ${count} would be sent again: ${parts}. Only the newest ${MAX_READ} deliveries were counted.`;
}
