import type {
  Client,
  Delivery,
  DeliveryStatus,
  Project,
  WebhookInList,
  WebhookPlace,
} from "../../client/src/client.ts";
import { ApiError } from "../../client/src/errors.ts";
import { CommandError, exitCodes, usageError } from "./exit-codes.ts";
import { printable } from "./terminal.ts";

/* What is meant by a name, the start of an id, or nothing at all, where that can only be one thing. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const isUuid = (text: string): boolean => UUID.test(text);

const notFound = (message: string, advice: string) => new CommandError(exitCodes.notFound, message, advice);

/**
 * The id of the project with this id or name; of the only one when nothing is said.
 * @throws CommandError when it is none, or could be several
 */
export async function findProject(api: Client, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined && isUuid(wanted)) return wanted;
  const projects = await api.listProjects();
  const found = wanted === undefined ? projects : projects.filter(({ name }) => name === wanted);
  const [project, another] = found;
  if (project !== undefined && another === undefined) return project.id;
  if (another !== undefined) {
    const which = wanted === undefined ? "You are in several projects" : `Several projects are called ${wanted}`;
    throw usageError(`${which}.`, `Say --project <id>:\n${listed(found)}`);
  }
  if (wanted === undefined) throw notFound("You are in no project.", "Ask the owner of one to let you in.");
  throw notFound(`You are in no project called ${wanted}.`, `Yours are:\n${listed(projects)}`);
}

const listed = (projects: Project[]): string =>
  projects.map(({ id, name }) => `  ${id}  ${printable(name)}`).join("\n");

/** Less is too likely to be another one tomorrow. */
const MIN_PREFIX = 4;

/**
 * The id of the webhook whose id starts so; of the only one when nothing is said. A project's list is complete, so that a
 * start which is unique in it means one webhook.
 */
export async function findWebhook(api: Client, projectId: string, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined && isUuid(wanted)) return wanted;
  return single(await api.listWebhooks(projectId), wanted).id;
}

export const noWebhook = (): CommandError =>
  notFound("The project has no webhook.", "svc webhooks create <url> --events …");

function single(webhooks: WebhookInList[], wanted: string | undefined): WebhookInList {
  const found = wanted === undefined ? webhooks : startingWith(webhooks, wanted);
  const [webhook, another] = found;
  const ids = found.map(({ id, url }) => `  ${id}  ${printable(url)}`).join("\n");
  if (another !== undefined) {
    const which = wanted === undefined ? "The project has several webhooks" : `Several webhooks start with ${wanted}`;
    throw usageError(`${which}.`, `Say which by its id:\n${ids}`);
  }
  if (webhook !== undefined) return webhook;
  if (wanted === undefined) throw noWebhook();
  throw notFound(`No webhook of the project starts with ${wanted}.`, "svc webhooks list shows the ids");
}

function startingWith<Item extends { id: string }>(items: Item[], start: string): Item[] {
  if (!/^[0-9a-f-]+$/i.test(start) || start.length < MIN_PREFIX) {
    throw usageError(`${start} is no id: it takes one, or at least its first ${MIN_PREFIX} characters.`);
  }
  return items.filter(({ id }) => id.startsWith(start.toLowerCase()));
}

/** What is deleted is named in full: the start of an id may mean another one once the first is gone. */
export function requireWholeId(id: string): string {
  if (isUuid(id)) return id;
  throw usageError(`${id} is not a whole id, which is what is deleted.`, "Copy it from the list.");
}

/** The webhook that is named, or all of the project. */
export async function webhooksOf(api: Client, projectId: string, webhook: string | undefined): Promise<WebhookPlace[]> {
  if (webhook !== undefined) return [{ projectId, webhookId: await findWebhook(api, projectId, webhook) }];
  return (await api.listWebhooks(projectId)).map(({ id }) => ({ projectId, webhookId: id }));
}

/** @throws CommandError when none of the webhooks has it */
export async function findDelivery(api: Client, places: WebhookPlace[], id: string) {
  if (!isUuid(id)) throw usageError(`${id} is no delivery id: those are UUIDs.`);
  for (const place of places) {
    try {
      return { place, delivery: await api.getDelivery(place, id) };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  throw notFound(`There is no delivery ${id}.`, "svc deliveries list shows the ids");
}

/** What a page of deliveries has at most. */
const MAX_PAGE = 100;

interface Newest {
  status?: DeliveryStatus | undefined;
  limit: number;
}

/** The newest deliveries of several webhooks. Ids begin with the time of the event: the largest are the newest. */
export async function newestDeliveries(
  api: Client,
  places: WebhookPlace[],
  { status, limit }: Newest,
): Promise<Delivery[]> {
  const lists = await Promise.all(
    places.map((place) =>
      firstOf(api.eachDelivery(place, { ...(status && { status }), limit: Math.min(limit, MAX_PAGE) }), limit),
    ),
  );
  const all = lists.flat().sort((a, b) => (a.id < b.id ? 1 : -1));
  return all.slice(0, limit);
}

async function firstOf<Item>(items: AsyncIterable<Item>, limit: number): Promise<Item[]> {
  const taken: Item[] = [];
  for await (const item of items) if (taken.push(item) >= limit) break;
  return taken;
}
