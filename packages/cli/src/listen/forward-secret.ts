import { randomBytes } from "node:crypto";
import { readConfig, writeConfig } from "../commands/config.ts";
import { note } from "../terminal/terminal.ts";

/** Creates a secret as the service does. */
export const generateSecret = (): string => `whsec_${randomBytes(32).toString("hex")}`;

/** Returns the secret that signs what this machine forwards if no other one is given. Creates it at the first use. */
export function forwardSecret(): string {
  const config = readConfig();
  const forward_secret = config.forward_secret ?? generateSecret();
  if (config.forward_secret === undefined) writeConfig({ ...config, forward_secret });
  note(`Signing secret of this machine: ${forward_secret} (or pass yours: --secret, --secret-file)`);
  return forward_secret;
}
