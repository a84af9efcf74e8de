import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { DUE_SHARDS, findOverdue, wakeUpKey } from "../../functions/deliveries/backlog-store.ts";
import { dynamo } from "../../functions/platform/aws.ts";
import { allEnded } from "../../functions/platform/parallel.ts";

/**
 * Releases the lines of webhooks that workers had leased when the service was killed. On AWS a lease ends when the process
 * has ended for certain; here no worker outlives the service, so that a delivery need not wait for a minute.
 */
export async function releaseLeases(): Promise<void> {
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  await allEnded(shards.map(releaseShard));
}

async function releaseShard(shard: number): Promise<void> {
  let after: Record<string, unknown> | undefined;
  do {
    const { wakeUps, next } = await findOverdue(shard, new Date(), 100, after);
    const released = wakeUps.map((webhook) =>
      dynamo().send(
        new UpdateCommand({
          ...wakeUpKey(webhook),
          UpdateExpression: "REMOVE lease_until, lease_id",
          ConditionExpression: "attribute_exists(due)",
        }),
      ),
    );
    await allEnded(released);
    after = next;
  } while (after);
}
