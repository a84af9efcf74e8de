import { DisableRuleCommand, EnableRuleCommand } from "@aws-sdk/client-eventbridge";
import {
  DeleteFunctionConcurrencyCommand,
  GetEventSourceMappingCommand,
  InvokeCommand,
  PutFunctionConcurrencyCommand,
  UpdateEventSourceMappingCommand,
} from "@aws-sdk/client-lambda";
import { DeleteMessageCommand, GetQueueUrlCommand, type Message, SendMessageCommand } from "@aws-sdk/client-sqs";
import { deadLetterName, type QueueKey, queues } from "../../functions/foundation/manifest/queues.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { deployedName } from "../../lib/names.ts";
import { makeVisible, receiveAll } from "../command/dead-letters.ts";
import { AwsError, eventBridge, invoker, lambda } from "../smoke/aws/clients.ts";
import { nameOf, type StageStack } from "../smoke/aws/stack.ts";

/* What a drill does to ring an alarm, and how it is undone. */

/** The stage of a drill. */
export interface DrillSite {
  stack: StageStack;
  /** Marks what the drill creates: the text is in each of its messages. */
  mark: string;
  /** Waits. Ends early when the drill is interrupted. */
  wait(ms: number): Promise<void>;
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

/** Finds a resource of the stack. @throws Error when the stack has none */
function resource({ stack }: DrillSite, type: string, prefix: string): string {
  const name = nameOf(stack, type, prefix);
  if (name === undefined) throw new Error(`${stack.name} has no ${type} whose logical id begins with ${prefix}.`);
  return name;
}

async function urlOf({ stack }: DrillSite, name: string): Promise<string> {
  const QueueName = deployedName({ name: stack.stage }, name);
  return (await sqs().send(new GetQueueUrlCommand({ QueueName }))).QueueUrl ?? "";
}

const deadLettersOf = (site: DrillSite, key: QueueKey) => urlOf(site, deadLetterName(queues[key]));

/** A message that no consumer accepts. */
const bodyOf = ({ mark }: DrillSite): string => JSON.stringify({ drill: mark });

async function send(site: DrillSite, QueueUrl: string): Promise<void> {
  await sqs().send(new SendMessageCommand({ QueueUrl, MessageBody: bodyOf(site) }));
}

/** Bounds the search in a dead-letter queue. */
const MAX_SEARCHED = 1_000;
/** Seconds for which a searched message is invisible. */
const SEARCH_SECONDS = 60;

/** Deletes the message of a drill from a dead-letter queue, and no other. @returns whether it was found */
async function deleteMarked({ mark }: DrillSite, QueueUrl: string): Promise<boolean> {
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

/** Deletes the message, which may arrive minutes later: after its consumer runs again. */
async function removeDeadLetter(site: DrillSite, key: QueueKey, minutes: number): Promise<void> {
  const url = await deadLettersOf(site, key);
  for (let waited = 0; waited <= minutes; waited += 1) {
    if (await deleteMarked(site, url)) return;
    if (waited < minutes) await patient(site.minuteMs);
  }
  throw new Error(`The message with ${site.mark} was not found in ${url}. Look for it and delete it.`);
}

/** Sends a message that ends in a dead-letter queue, and deletes it there. */
function sentMessage(site: DrillSite, key: QueueKey, url: () => Promise<string>): Fault {
  let isSent = false;
  return {
    async start() {
      await send(site, await url());
      isSent = true;
    },
    async end() {
      if (isSent) await removeDeadLetter(site, key, 3);
    },
  };
}

/** Sends an event that is not valid: the fan-out moves it to the dead-letter queue. */
export const rejectedEvent: CreateFault = (site) => sentMessage(site, "events", () => urlOf(site, queues.events.name));

/** Puts a message into the dead-letter queue of the sender, which would move it there only after ten hours. */
export const deadLetter: CreateFault = (site) =>
  sentMessage(site, "deliveries", () => deadLettersOf(site, "deliveries"));

/**
 * Enables or disables an event source mapping, and waits for it. While the mapping changes, for example because the
 * opposite was requested just before, Lambda may refuse: then it asks again.
 * https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
 * @throws Error after five minutes; AwsError when a call fails for another reason
 */
async function enableMapping(
  { minuteMs, wait }: Pick<DrillSite, "minuteMs" | "wait">,
  UUID: string,
  Enabled: boolean,
): Promise<void> {
  let isAccepted = false;
  for (let tries = 0; tries < 60; tries += 1) {
    isAccepted ||= await requestChange(UUID, Enabled);
    if (isAccepted) {
      const { State } = await lambda.send(new GetEventSourceMappingCommand({ UUID }));
      if (State === (Enabled ? "Enabled" : "Disabled")) return;
    }
    await wait(minuteMs / 12);
  }
  throw new Error(`The event source mapping ${UUID} is not ${Enabled ? "enabled" : "disabled"} after five minutes.`);
}

/** @returns whether Lambda accepted the change; false = the mapping is changing */
async function requestChange(UUID: string, Enabled: boolean): Promise<boolean> {
  try {
    await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled }));
    return true;
  } catch (error) {
    if (error instanceof AwsError && error.code === "ResourceInUseException") return false;
    throw error;
  }
}

/** Stops the fan-out and sends an event, which then waits. */
export const pausedFanOut: CreateFault = (site) => {
  const uuid = resource(site, "AWS::Lambda::EventSourceMapping", "WorkersDeliveriesFanOut");
  let isSent = false;
  return {
    async start() {
      await enableMapping(site, uuid, false);
      await send(site, await urlOf(site, queues.events.name));
      isSent = true;
    },
    async end() {
      await enableMapping({ minuteMs: site.minuteMs, wait: patient }, uuid, true);
      if (isSent) await removeDeadLetter(site, "events", 5);
    },
  };
};

/** Waits also after an interrupt: the fault must be undone. */
const patient = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Disables the schedule of the sweep. */
export const pausedSweep: CreateFault = (site) => {
  const Name = resource(site, "AWS::Events::Rule", "WorkersDeliveriesSweepSchedule");
  return {
    start: async () => void (await eventBridge.send(new DisableRuleCommand({ Name }))),
    end: async () => void (await eventBridge.send(new EnableRuleCommand({ Name }))),
  };
};

/** Calls a function several times a minute with an input at which it crashes. It reads and writes nothing before. */
export const crashingCalls =
  (logicalId: string, perMinute: number): CreateFault =>
  (site) => {
    const FunctionName = resource(site, "AWS::Lambda::Function", logicalId);
    const crash = async () => {
      const command = new InvokeCommand({ FunctionName, Payload: "{}" });
      for (let each = 0; each < perMinute; each += 1) await invoker.send(command);
    };
    return { start: crash, repeat: crash, end: async () => {} };
  };

/**
 * Gives the endpoint that revokes leaked credentials no concurrency, and sends it requests, which need no credential: they get
 * a 5xx response. No stage reserves concurrency for it.
 */
export const failingRequests: CreateFault = (site) => {
  const FunctionName = resource(site, "AWS::Lambda::Function", "EndpointsRevokeCredentialsFunction");
  const call = async () => {
    for (let each = 0; each < 12; each += 1) {
      const request = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
      const { status } = await fetch(`${site.stack.apiUrl}/v1/credentials/revoke`, request);
      if (status < 500) throw new Error(`An endpoint without concurrency responded with ${status}.`);
    }
  };
  return {
    async start() {
      await lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: 0 }));
      await call();
    },
    repeat: call,
    end: async () => void (await lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName }))),
  };
};
