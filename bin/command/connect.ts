import { GetQueueUrlCommand } from "@aws-sdk/client-sqs";
import { deadLetterName, queues } from "../../functions/foundation/manifest/queues.ts";
import { tables } from "../../functions/foundation/manifest/tables.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { deployedName } from "../../lib/names.ts";
import type { DeadLetterQueue } from "./dead-letters.ts";
import { findRunning } from "./running-service.ts";
import { type LocalSettings, readSettings, setFunctionDefaults } from "./settings.ts";
import { startCommand } from "./shell-commands.ts";
import { StartError } from "./start-error.ts";

/** The queues that a program works with. */
export interface Connection {
  eventsQueueUrl: string;
  deadLetterQueues: DeadLetterQueue[];
}

/**
 * Points the functions of this process at the engines of the running service.
 * @throws StartError when no service is running
 */
export async function connect(): Promise<Connection> {
  const settings = readSettings();
  setFunctionDefaults(settings);
  const running = await findRunning(settings.dataDir);
  const dynamoEndpoint = settings.dynamoEndpoint ?? running?.dynamoEndpoint;
  const sqsEndpoint = settings.sqsEndpoint ?? running?.sqsEndpoint;
  if (dynamoEndpoint === undefined || sqsEndpoint === undefined) {
    throw notRunning(settings);
  }
  process.env.AWS_ENDPOINT_URL_DYNAMODB = dynamoEndpoint;
  process.env.AWS_ENDPOINT_URL_SQS = sqsEndpoint;
  if (running?.events !== undefined) process.env.EVENTS ||= running.events;
  const urlOf = (name: string) => `${sqsEndpoint}/000000000000/${name}`;
  for (const { env, name } of Object.values(tables)) process.env[env] ??= name;
  for (const { env, name } of Object.values(queues)) process.env[env] ??= urlOf(name);
  return connection(async (name) => urlOf(name));
}

export const notRunning = (settings: LocalSettings): StartError =>
  new StartError(
    `No service is running with the data directory ${settings.dataDir}. Start it in another terminal: ${startCommand(settings)}`,
  );

/**
 * Points this process at the queues of a stage on AWS, with the credentials and region of the environment.
 * @throws StartError when a queue does not exist or the credentials do not reach it
 */
export const connectToStage = (stage: string): Promise<Connection> => connection((name) => stageQueueUrl(stage, name));

/** Returns the URL of a queue of a stage. @throws StartError */
export async function stageQueueUrl(stage: string, name: string): Promise<string> {
  const QueueName = deployedName({ name: stage }, name);
  try {
    return (await sqs().send(new GetQueueUrlCommand({ QueueName }))).QueueUrl ?? "";
  } catch (error) {
    throw new StartError(
      `The queue ${QueueName} cannot be reached: ${(error as Error).message}. Check the stage, AWS_PROFILE and AWS_REGION.`,
    );
  }
}

async function connection(urlOf: (name: string) => Promise<string>): Promise<Connection> {
  const deadLetterQueues = await Promise.all(
    Object.values(queues).map(async (row) => ({
      source: { name: row.name, url: await urlOf(row.name) },
      url: await urlOf(deadLetterName(row)),
    })),
  );
  return { eventsQueueUrl: await urlOf(queues.events.name), deadLetterQueues };
}
