import { command, readArguments, UsageError } from "./local/command.ts";
import { connect, connectToStage } from "./local/connect.ts";
import { type DeadLetter, listDeadLetters, redriveDeadLetters } from "./local/dead-letters.ts";

const usage = "npm run --silent dlq -- list|redrive [--queue deployment-events|deliveries] [--stage <stage on AWS>]";

/*
 * What is in the dead letter queues, and back with it. A message there means a fault of ours, or an event that is none: the
 * reason tells which. Redrive puts messages back into the queue they came from; delivery ids keep that from sending twice.
 */
await command(usage, async () => {
  const [[verb], { queue, stage }] = readArguments(["queue", "stage"]);
  const queues = stage === undefined ? await connect() : await connectToStage(stage);
  const wanted = queues.deadLetterQueues.filter(({ source }) => queue === undefined || source.name === queue);
  if (wanted.length === 0) throw new UsageError(`There is no queue ${queue}`);
  if (verb === "list") {
    const lists = await Promise.all(wanted.map(async (each) => ({ ...each, messages: await listDeadLetters(each) })));
    return lists.map(({ source, messages }) => page(source.name, messages)).join("\n\n");
  }
  if (verb === "redrive") {
    const counts = await Promise.all(wanted.map(redriveDeadLetters));
    return wanted.map(({ source }, index) => `${source.name}: ${counts[index]} put back`).join("\n");
  }
  throw new UsageError(verb === undefined ? "Say list or redrive" : `There is no dlq ${verb}`);
});

function page(name: string, messages: DeadLetter[]): string {
  if (messages.length === 0) return `${name}: nothing in the dead letter queue`;
  const rows = messages.map(
    ({ sentAt, reason, body }) => `  ${sentAt}  ${reason}\n    ${body.slice(0, 500).replaceAll(/\s+/g, " ")}`,
  );
  return `${name}: ${messages.length} in the dead letter queue\n${rows.join("\n")}`;
}
