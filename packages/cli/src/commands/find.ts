import type {
  Client,
  Delivery,
  DeliveryQuery,
  Project,
  WebhookInList,
  WebhookRef,
} from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { CommandError, exitCodes, usageError } from "../terminal/exit-codes.ts";
import { printable } from "../terminal/terminal.ts";
import { webhookLabel, withoutScheme } from "../views/webhook-view.ts";

/* Finds the project, webhook or delivery that an argument identifies. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const isUuid = (text: string): boolean => UUID.test(text);

const notFound = (message: string, advice: string) => new CommandError(exitCodes.notFound, message, advice);

/**
 * Finds a project by its id or its name. A workflow must pass the id: any project can trust it, also one that takes the
 * name of another.
 * @param idOrName undefined selects the only project of the key or of the user
 * @returns the id; an id that is passed is returned unchecked
 * @throws CommandError when no project matches, or several do, or the credential is the token of a workflow
 */
export async function findProject(api: Client, idOrName: string | undefined): Promise<string> {
  if (idOrName !== undefined && isUuid(idOrName)) return idOrName;
  const { type, project_ids } = await api.getCurrentCredential();
  if (type === "workflow") {
    const rule =
      idOrName === undefined
        ? "With the token of a workflow, the id of the project is required: any project can trust the workflow."
        : `With the token of a workflow, "${idOrName}" must be the id of the project: another one can trust the workflow and take the name.`;
    throw usageError(rule, "Pass the id. A person can read it with svc projects list.");
  }
  const [keyProject, otherProject] = project_ids ?? [];
  if (idOrName === undefined && keyProject !== undefined && otherProject === undefined) return keyProject;
  const projects = await api.listProjects();
  const matches = idOrName === undefined ? projects : projects.filter(({ name }) => name === idOrName);
  const [project, second] = matches;
  if (second !== undefined) {
    const message =
      idOrName === undefined ? "You are a member of several projects." : `Several projects are named "${idOrName}".`;
    const choices = matches.map(({ id, name }) => `  svc projects use ${id}   # ${printable(name)}`);
    throw usageError(message, `Pass --project, or choose one:\n${choices.join("\n")}`);
  }
  if (project !== undefined) return project.id;
  if (idOrName === undefined) {
    throw notFound("You are not a member of any project.", "Ask the owner of a project to add you.");
  }
  const choices = `Your projects:\n${projectLines(projects)}`;
  throw notFound(
    `No project named "${idOrName}".`,
    projects.length > 0 ? choices : "You are not a member of any project.",
  );
}

const projectLines = (projects: Project[]): string =>
  projects.map(({ id, name }) => `  ${id}  ${printable(name)}`).join("\n");

/** A shorter prefix that is unique today is likely to match another webhook tomorrow. */
const MIN_ID_PREFIX = 4;

/** The last part of an id, as lists on a terminal show it. */
const SHORT_ID = /^[0-9a-f]{12}$/i;

/**
 * Finds a webhook of a project by its id, the last part or a unique prefix of its id, or its name.
 * @param text undefined selects the only webhook of the project
 * @returns the id; a full id is returned unchecked
 * @throws CommandError when no webhook matches, or several do
 */
export async function findWebhook(api: Client, projectId: string, text: string | undefined): Promise<string> {
  if (text !== undefined && isUuid(text)) return text;
  // Not paginated, so that a prefix that is unique in the list is unique in the project.
  return requireOne(await api.listWebhooks(projectId), projectId, text).id;
}

/** An example that can be pasted. */
export const creation = (projectId: string) =>
  `svc webhooks create https://example.com/hook --events deploy.failed --project ${projectId}`;

export const noWebhookError = (projectId: string): CommandError =>
  notFound("The project has no webhooks.", `Create one: ${creation(projectId)}`);

function requireOne(webhooks: WebhookInList[], projectId: string, text: string | undefined): WebhookInList {
  // The subscriptions of assistants are not what a person means who names none.
  const matches = webhooks.filter((webhook) => (text === undefined ? !webhook.subscription : isMeant(webhook, text)));
  const [webhook, second] = matches;
  if (second !== undefined) {
    const message = text === undefined ? "The project has several webhooks." : `Several webhooks match ${text}.`;
    const lines = matches.map(({ id, url, name = "" }) => `  ${id}  ${printable(`${name}  ${url}`.trim())}`);
    const what = text === undefined ? "the id or the name" : "the id";
    throw usageError(message, `Pass ${what} of one:\n${lines.join("\n")}`);
  }
  if (webhook !== undefined) return webhook;
  if (text === undefined) throw noWebhookError(projectId);
  throw notFound(
    `No webhook of the project has the name or the id ${text}.`,
    `Pass a name, an id, or at least the first ${MIN_ID_PREFIX} characters of one: svc webhooks list --project ${projectId}`,
  );
}

function isMeant({ id, name }: WebhookInList, text: string): boolean {
  const part = text.toLowerCase();
  return name === text || isShortId(id, part) || (part.length >= MIN_ID_PREFIX && id.startsWith(part));
}

const isShortId = (id: string, text: string): boolean => SHORT_ID.test(text) && id.endsWith(text.toLowerCase());

/** Returns the parser of an argument that must be a whole id. @throws CommandError when it is not */
const idParser = (kind: string, advice: string, pattern?: RegExp) => (text: string) => {
  if (isUuid(text) || pattern?.test(text)) return text.toLowerCase();
  throw usageError(`${text} is not a ${kind}.`, advice);
};

/** Rejects a prefix for a delete: after the first delete, it may match another resource. */
export const requireFullId = idParser("full id", "Pass the full id; prefixes are not accepted here.");
export const requireWebhookId = idParser("whole id", "Pass the id as svc webhooks list shows it.", SHORT_ID);
export const requireDeliveryId = idParser("valid delivery id", "List the ids: svc deliveries list", SHORT_ID);
export const requireDeploymentId = idParser("valid deployment id", "Pass the full id, a UUID.");

/** @returns the webhook with the id or prefix, or all webhooks of the project when none is passed */
export async function webhooksOf(
  api: Client,
  projectId: string,
  idOrPrefix: string | undefined,
): Promise<WebhookRef[]> {
  if (idOrPrefix !== undefined) return [{ projectId, webhookId: await findWebhook(api, projectId, idOrPrefix) }];
  return (await api.listWebhooks(projectId)).map(({ id }) => ({ projectId, webhookId: id }));
}

/**
 * How lists name the webhooks of a project, by id; those of one host by their URL without scheme. Empty for a key that may not
 * list them: ids are shown then.
 */
export async function webhookLabels(api: Client, projectId: string): Promise<Map<string, string>> {
  try {
    const webhooks = await api.listWebhooks(projectId);
    const labels = webhooks.map(webhookLabel);
    const isShared = (label: string) => labels.filter((each) => each === label).length > 1;
    const labelOf = (webhook: WebhookInList) => {
      const label = webhookLabel(webhook);
      return webhook.name === undefined && isShared(label) ? withoutScheme(webhook.url) : label;
    };
    return new Map(webhooks.map((webhook) => [webhook.id, labelOf(webhook)]));
  } catch (error) {
    if (error instanceof ApiError && error.code === "insufficient_permission") return new Map();
    throw error;
  }
}

/** The newest deliveries in which a short id is looked for. */
const SEARCHED_DELIVERIES = 1_000;

/**
 * Finds a delivery by its id, or by the last part of it.
 * @throws CommandError when there is none
 */
export async function findDelivery(api: Client, scope: DeliveryScope, id: string) {
  const { projectId } = scope;
  if (!isUuid(id)) {
    const newest = await newestDeliveries(api, scope, { limit: SEARCHED_DELIVERIES });
    const found = newest.find((delivery) => isShortId(delivery.id, id));
    const message = `None of the newest ${newest.length} deliveries has the id ${id}.`;
    if (!found) throw notFound(message, "Pass the full id: svc deliveries list --json");
    const webhook = { projectId, webhookId: found.webhook_id };
    return { webhook, delivery: await api.getDelivery(webhook, found.id) };
  }
  for (const webhook of await webhooksOf(api, projectId, scope.webhookId)) {
    try {
      return { webhook, delivery: await api.getDelivery(webhook, id) };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  throw notFound(`No delivery with the id ${id}.`, "List the ids: svc deliveries list");
}

/** A project, or one of its webhooks. */
export interface DeliveryScope {
  projectId: string;
  /** Undefined = all webhooks of the project. */
  webhookId?: string | undefined;
}

/**
 * Lists the newest deliveries, newest first. Requests pages until enough match, or none is left.
 * @param limit the number of deliveries
 */
export async function newestDeliveries(
  api: Client,
  { projectId, webhookId }: DeliveryScope,
  { limit, ...filters }: DeliveryQuery & { limit: number },
): Promise<Delivery[]> {
  // The API has pages of 100.
  const query = { ...filters, limit: Math.min(limit, 100) };
  const found: Delivery[] = [];
  for await (const delivery of webhookId === undefined
    ? api.eachProjectDelivery(projectId, query)
    : api.eachDelivery({ projectId, webhookId }, query)) {
    found.push(delivery);
    if (found.length === limit) break;
  }
  return found;
}

/** @param idOrPrefix of a webhook; undefined = all webhooks of the project */
export const findScope = async (
  api: Client,
  projectId: string,
  idOrPrefix: string | undefined,
): Promise<DeliveryScope> =>
  idOrPrefix === undefined ? { projectId } : { projectId, webhookId: await findWebhook(api, projectId, idOrPrefix) };
