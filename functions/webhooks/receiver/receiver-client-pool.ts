import { settings } from "../../foundation/platform/env.ts";
import { parseCidrs } from "./receiver-address.ts";
import { createReceiverClient, DEFAULT_LIMITS, type Outcome, type ReceiverClient } from "./receiver-client.ts";
import { createResolver } from "./resolver.ts";

/* The receiver client that all attempts of this process share. */

/**
 * Max idle time after which connections are reused. In a longer pause Lambda may have frozen the process, and receivers
 * may have closed the connections.
 */
const MAX_IDLE_MS = 3_000;

let client: ReceiverClient | undefined;
let lastUsedAt = 0;
let inFlight = 0;

/**
 * Sends a request, over a new connection when the process was idle for more than `MAX_IDLE_MS`. A failed request is an
 * outcome, not an exception.
 * @throws SettingError when WEBHOOK_ALLOW_CIDRS is not valid
 */
export async function post(url: string, headers: Record<string, string>, body: string): Promise<Outcome> {
  if (inFlight === 0 && Date.now() - lastUsedAt > MAX_IDLE_MS) {
    void client?.close();
    client = undefined;
  }
  client ??= createClient();
  inFlight += 1;
  try {
    return await client.post(url, headers, body);
  } finally {
    inFlight -= 1;
    lastUsedAt = Date.now();
  }
}

function createClient(): ReceiverClient {
  const allowed = parseCidrs(settings.webhookAllowCidrs());
  return createReceiverClient(allowed, DEFAULT_LIMITS, createResolver(settings.dnsServers(), allowed.length > 0));
}
