import { printable } from "../../packages/cli/src/terminal/terminal.ts";
import { command, UsageError } from "../command/command.ts";
import { connect, connectToStage } from "../command/connect.ts";
import { type DeadLetter, listDeadLetters, redriveDeadLetters } from "../command/dead-letters.ts";
import { stageOption } from "../command/invoke-function.ts";
import { settingRows } from "../command/settings.ts";

const help = {
  name: "npm run --silent dlq",
  about: `Lists the messages in the dead-letter queues, or returns them to the queues they were sent to.
A message there is an invalid event or points to a fault of the service; its reason states which. A redrive does not
send a delivery twice, because the id of a delivery is derived from its event.`,
  words: "list|redrive",
  options: {
    queue: {
      value: "deployment-events|deliveries|deliveries-slow",
      about: "only this queue",
      shownDefault: "all",
    },
    json: { about: "of list: one JSON object per message, with its body, for the team of the pipeline" },
    stage: stageOption,
  },
  settings: settingRows("DATA_DIR", "AWS_ENDPOINT_URL_SQS"),
  examples: [
    "npm run --silent dlq -- list",
    "npm run --silent dlq -- list --queue deployment-events --stage prod",
    "npm run --silent dlq -- list --json | jq -r .body",
    "npm run --silent dlq -- redrive --queue deliveries --stage prod",
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ queue, json, stage }, [verb, ...more]) => {
    if ((verb !== "list" && verb !== "redrive") || more.length > 0) {
      const given = [verb, ...more].join(" ");
      throw new UsageError(`${given === "" ? "" : `No command named ${given}. `}Pass list or redrive.`);
    }
    const { deadLetterQueues } = stage === undefined ? await connect() : await connectToStage(stage);
    const selected = deadLetterQueues.filter(({ source }) => queue === undefined || source.name === queue);
    if (selected.length === 0) throw new UsageError(`No queue named ${queue}.`);
    if (verb === "list") {
      const lists = await Promise.all(
        selected.map(async (each) => (json ? records : page)(each.source.name, await listDeadLetters(each))),
      );
      return lists.flat().join(json ? "\n" : "\n\n") || undefined;
    }
    const counts = await Promise.all(selected.map(redriveDeadLetters));
    return selected.map(({ source }, index) => `${source.name}: ${counts[index]} redriven`).join("\n");
  });
}

const records = (queue: string, messages: DeadLetter[]): string[] =>
  messages.map(({ sentAt, ...message }) => JSON.stringify({ queue, sent_at: sentAt, ...message }));

function page(name: string, messages: DeadLetter[]): string {
  if (messages.length === 0) return `${name}: the dead-letter queue is empty`;
  const rows = messages.map(
    ({ sentAt, reason, body }) =>
      `  ${sentAt}  ${printable(reason)}\n    ${printable(body.slice(0, 500).replaceAll(/\s+/g, " "))}`,
  );
  return `${name}: ${messages.length} in the dead-letter queue\n${rows.join("\n")}`;
}
