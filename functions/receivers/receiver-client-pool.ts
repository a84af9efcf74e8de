import { settings } from "../platform/env.ts";
import { parseCidrs } from "./receiver-address.ts";
import { createReceiverClient, type Outcome, type ReceiverClient } from "./receiver-client.ts";

/* The one receiver client of this process, and when not to trust its connections any more. */

/** After a pause this long, Lambda had the process frozen or receivers have hung up: the next request dials anew. */
const MAX_IDLE_MS = 3_000;

let client: ReceiverClient | undefined;
let lastUsedAt = 0;
let inFlight = 0;

export async function post(url: string, headers: Record<string, string>, body: string): Promise<Outcome> {
  if (inFlight === 0 && Date.now() - lastUsedAt > MAX_IDLE_MS) {
    void client?.close();
    client = undefined;
  }
  client ??= createReceiverClient(parseCidrs(settings.webhookAllowCidrs()));
  inFlight += 1;
  try {
    return await client.post(url, headers, body);
  } finally {
    inFlight -= 1;
    lastUsedAt = Date.now();
  }
}
