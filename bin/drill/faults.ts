import { setTimeout as sleep } from "node:timers/promises";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { DeleteMessageCommand, type Message, SendMessageCommand } from "@aws-sdk/client-sqs";
import { deadLetterName, type QueueKey, queues } from "../../functions/foundation/manifest/queues.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { stageQueueUrl } from "../command/connect.ts";
import { makeVisible, receiveAll } from "../command/dead-letters.ts";
import { lambda } from "../smoke/aws/clients.ts";
import { nameOf, type StageStack } from "../smoke/aws/stack.ts";

/* What a drill does to ring an alarm, and how it is undone. */

/** The stage of a drill. */
export interface DrillSite {
  stack: StageStack;
  /** Marks what the drill creates: the text is in each of its messages. */
  mark: string;
  minuteMs: number;
}

/** A fault on purpose. */
export interface Fault {
  start(): Promise<void>;
  /** Called once a minute until the alarm rings; absent = once is enough. */
  repeat?(): Promise<void>;
  /** Undoes the fault. Is called in every case, also when `start` failed. @throws Error with what is left */
  end(): Promise<void>;
}

export type CreateFault = (site: DrillSite) => Fault;

/** Bounds the search in a dead-letter queue. */
const MAX_SEARCHED = 1_000;
/** Seconds for which a searched message is invisible. */
const SEARCH_SECONDS = 60;

/** Deletes the message of a drill from a dead-letter queue, and no other. @returns whether it was found */
async function deleteMarked(mark: string, QueueUrl: string): Promise<boolean> {
  const others: Message[] = [];
  try {
    for await (const message of receiveAll(QueueUrl, SEARCH_SECONDS)) {
      if (message.Body?.includes(mark)) {
        await sqs().send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }));
        return true;
      }
      others.push(message);
      if (others.length === MAX_SEARCHED) break;
    }
    return false;
  } finally {
    await makeVisible(QueueUrl, others);
  }
}

/** Max wait until the message has arrived in the dead-letter queue, in minutes. */
const MOVE_MINUTES = 3;

/**
 * Sends a message that no consumer accepts, and deletes it in a dead-letter queue.
 * @param name the queue that it is sent to
 * @param key the queue whose dead-letter queue it ends in
 */
function sentMessage({ stack: { stage }, mark, minuteMs }: DrillSite, name: string, key: QueueKey): Fault {
  let isSent = false;
  return {
    async start() {
      const QueueUrl = await stageQueueUrl(stage, name);
      await sqs().send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify({ drill: mark }) }));
      isSent = true;
    },
    async end() {
      if (!isSent) return;
      const url = await stageQueueUrl(stage, deadLetterName(queues[key]));
      for (let waited = 0; waited <= MOVE_MINUTES; waited += 1) {
        if (await deleteMarked(mark, url)) return;
        if (waited < MOVE_MINUTES) await sleep(minuteMs);
      }
      throw new Error(`The message with ${mark} was not found in ${url}. Look for it and delete it.`);
    },
  };
}

/** Sends an event that is not valid: the fan-out moves it to the dead-letter queue. */
export const rejectedEvent: CreateFault = (site) => sentMessage(site, queues.events.name, "events");

/** Puts a message into the dead-letter queue of the sender, which would move it there only after ten hours. */
export const deadLetter: CreateFault = (site) => sentMessage(site, deadLetterName(queues.deliveries), "deliveries");

/** Calls a function several times a minute with an input at which it crashes. It reads and writes nothing before. */
export const crashingCalls =
  (logicalId: string, perMinute: number): CreateFault =>
  ({ stack }) => {
    const FunctionName = nameOf(stack, "AWS::Lambda::Function", logicalId);
    const crash = async () => {
      const command = new InvokeCommand({ FunctionName, Payload: "{}" });
      for (let each = 0; each < perMinute; each += 1) await lambda.send(command);
    };
    return { start: crash, repeat: crash, end: async () => {} };
  };
