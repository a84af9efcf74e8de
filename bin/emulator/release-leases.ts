import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { allEnded } from "../../functions/foundation/platform/parallel.ts";
import { DUE_SHARDS, overduePages, wakeUpKey } from "../../functions/webhooks/webhook/wake-up-store.ts";

/**
 * Releases the lines of webhooks that workers had leased when the service was killed. On AWS a lease ends when the process
 * has ended for certain; here no worker outlives the service, so that a delivery need not wait for a minute.
 */
export async function releaseLeases(): Promise<void> {
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  await allEnded(shards.map(releaseShard));
}

async function releaseShard(shard: number): Promise<void> {
  for await (const wakeUps of overduePages(shard, new Date(), 100)) {
    const released = wakeUps.map((webhook) =>
      dynamo().send(new UpdateCommand({ ...wakeUpKey(webhook), UpdateExpression: "REMOVE lease_until, lease_id" })),
    );
    await allEnded(released);
  }
}
