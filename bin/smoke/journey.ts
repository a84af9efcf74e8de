import type { Project } from "../../packages/client/src/client.ts";
import { ApiError } from "../../packages/client/src/errors.ts";
import { verifyWebhook } from "../../packages/client/src/verify-webhook.ts";
import { rejectionOf } from "../demo/demo-page.ts";
import {
  assert,
  type CheckContext,
  CheckFailed,
  type CheckGroup,
  CheckSkipped,
  pause,
  requireResource,
} from "./check.ts";

/*
 * The journey of the demo on a stage, with the typed client: a key from its creation to its rejection, and a webhook from its
 * creation to its deletion. The webhook is disabled at once, so that it never receives the project's own events.
 */

/** A host name that never resolves (RFC 6761). */
const UNRESOLVABLE_URL = "https://smoke.invalid/";
const POLL_MS = 250;

const requireProjects = ({ projects }: CheckContext) => requireResource(projects, "the JWT was not accepted");
const requireKey = ({ key }: CheckContext) => requireResource(key, "no API key was created");
const requireWebhook = ({ webhook }: CheckContext) => requireResource(webhook, "no webhook was created");

/** @throws CheckFailed unless the API rejects the request with this code */
async function expectRejection(request: Promise<unknown>, code: string): Promise<void> {
  const rejection = await rejectionOf(request);
  assert(rejection.code === code, `expected ${code}, got ${rejection.status} ${rejection.code}`);
}

/** Returns the project of the webhook. @throws CheckSkipped when the user is not an admin of it */
function selectProject(context: CheckContext): Project {
  const { projectId } = context.options;
  const wanted = requireProjects(context).filter(({ id }) => projectId === undefined || id === projectId);
  const which = projectId === undefined ? "any project" : "--project";
  const project = wanted.find(({ role }) => role === "admin");
  if (!project) throw new CheckSkipped(`the user is not an admin of ${which}`);
  return project;
}

export const keyJourney: CheckGroup = {
  title: "An API key",
  sections: ["api-errors", "rejected-credentials"],
  checks: [
    {
      claim: "the JWT is accepted",
      async run(context) {
        context.projects = await context.user.listProjects();
        const { length } = context.projects;
        return length === 1 ? "1 project" : `${length} projects`;
      },
    },
    {
      claim: "a key is created, and the list does not show it",
      async run(context) {
        requireProjects(context);
        const { user, mark, secrets, created } = context;
        const { id, key, key_prefix } = await user.createApiKey({ name: mark });
        secrets.add(key);
        created.set(`API key ${id}`, () => user.deleteApiKey(id));
        context.key = { id, key };
        const list = await user.listApiKeys();
        assert(
          list.some((each) => each.id === id),
          "the list does not contain the key that was just created",
        );
        assert(!JSON.stringify(list).includes(key), "the list contains the key itself, which only creation may show");
        return `${key_prefix}…`;
      },
    },
    {
      claim: "the key sees the projects of its owner, and cannot create keys",
      async run(context) {
        const holder = context.holderOf(requireKey(context).key);
        const ids = (projects: Project[]) => projects.map(({ id }) => id).join();
        const seen = ids(await holder.listProjects());
        assert(seen === ids(requireProjects(context)), "the key sees other projects than its owner does");
        await expectRejection(holder.createApiKey({ name: context.mark }), "session_required");
        return undefined;
      },
    },
  ],
};

export const webhookJourney: CheckGroup = {
  title: "A webhook",
  sections: ["api-errors", "A receiver complains", "deliveries-waiting"],
  checks: [
    {
      claim: "a webhook is created with the key, and disabled",
      async run(context) {
        const { id: projectId, name } = selectProject(context);
        const { options, receiver, mark, secrets, created, user } = context;
        const target = typeof options.receiver === "object" ? options.receiver.url : receiver?.url;
        const url = `${target ?? UNRESOLVABLE_URL}#${mark}`;
        const holder = context.holderOf(requireKey(context).key);
        const { id, secret } = await holder.createWebhook(projectId, { url, events: ["deploy.failed"] });
        secrets.add(secret);
        context.webhook = { projectId, webhookId: id, secret };
        created.set(`webhook ${id} of project ${projectId}`, () => user.deleteWebhook({ projectId, webhookId: id }));
        const { enabled } = await user.updateWebhook(context.webhook, { enabled: false });
        assert(!enabled, "the webhook is still enabled after it was disabled");
        return `in ${name}`;
      },
    },
    {
      claim: "a test delivery arrives",
      async run(context) {
        const webhook = requireWebhook(context);
        if (!context.options.receiver) throw new CheckSkipped("pass --receiver <https url> to send a test delivery");
        const { id } = await context.user.sendTestDelivery(webhook);
        context.count.tests += 1;
        const note = await outcomeOf(context, id);
        const { receiver } = context;
        if (!receiver) return note;
        const delivery = receiver.deliveries.find(({ headers }) => headers["x-service-delivery"] === id);
        assert(delivery !== undefined, "the stage reports the delivery as succeeded, but it did not arrive here");
        for (const scheme of ["standard", "body"] as const) {
          await verifyWebhook({ ...delivery, secret: webhook.secret, scheme });
        }
        return `${note}, both signatures verified`;
      },
    },
    {
      claim: "the webhook is deleted, and then returns 404",
      async run(context) {
        const { user, created } = context;
        const webhook = requireWebhook(context);
        await user.deleteWebhook(webhook);
        created.delete(`webhook ${webhook.webhookId} of project ${webhook.projectId}`);
        await expectRejection(user.getWebhook(webhook), "not_found");
        return undefined;
      },
    },
    {
      claim: "the key is deleted, and the next request with it is rejected",
      async run(context) {
        const { id, key } = requireKey(context);
        await context.user.deleteApiKey(id);
        context.created.delete(`API key ${id}`);
        await expectRejection(context.holderOf(key).listProjects(), "invalid_api_key");
        context.count.rejected += 1;
        return undefined;
      },
    },
  ],
};

/** Waits for the result of a delivery. @throws CheckFailed unless it succeeds in time */
async function outcomeOf(context: CheckContext, id: string): Promise<string> {
  const { user, limits, stop } = context;
  const giveUpAt = Date.now() + limits.deliveryMs;
  for (;;) {
    const { status, attempts } = await user.getDelivery(requireWebhook(context), id);
    const attempt = attempts.at(-1);
    if (status === "succeeded" && attempt) return `status ${attempt.status_code} after ${attempt.duration_ms} ms`;
    if (status !== "pending") {
      const { error_code, status_code, hint } = attempt ?? {};
      const reason = error_code === "http_status" ? `status ${status_code}` : error_code;
      throw new CheckFailed(`the test delivery ${status}: ${reason ?? "no attempt"}. ${hint ?? ""}`.trim());
    }
    const isLate = `still pending after ${limits.deliveryMs / 1000} s: the sender does not process its queue`;
    if (Date.now() > giveUpAt) throw new CheckFailed(`the test delivery is ${isLate}`);
    await pause(POLL_MS, stop);
  }
}

const MARK = /^smoke-\d{8}T\d{6}Z-[0-9a-f]{6}$/;
/** Age from which a marked resource belongs to a killed run. A run takes about a minute. */
const ABANDONED_AFTER_MS = 3600 * 1000;

/**
 * Deletes what this run created, and what killed runs left behind. The mark also finds what was created although its response
 * was lost.
 * @returns the number of deleted resources
 * @throws CheckFailed that names what could not be deleted
 */
export async function removeAll(context: CheckContext): Promise<number> {
  const { user, mark, created, projects } = context;
  // The JWT was not accepted, so no resource can exist.
  if (!projects) return 0;
  const due = new Map(created);
  const failures: string[] = [];
  const orReport = (name: string, work: () => Promise<void>) =>
    work().catch((error: Error) => {
      // 404: already deleted, for example by a parallel run.
      if (!(error instanceof ApiError && error.status === 404)) failures.push(`${name} (${error.message})`);
    });
  const isDue = (found = "", createdAt: string) =>
    found === mark || (MARK.test(found) && Date.now() - Date.parse(createdAt) > ABANDONED_AFTER_MS);
  await orReport(`any API key named ${mark}`, async () => {
    for (const { id, name, created_at } of await user.listApiKeys()) {
      if (isDue(name, created_at)) due.set(`API key ${id}`, () => user.deleteApiKey(id));
    }
  });
  const project = projects.find(({ id, role }) => role === "admin" && id === (context.options.projectId ?? id));
  if (project) {
    await orReport(`any webhook whose URL ends in #${mark}`, async () => {
      for (const { id, url, created_at } of await user.listWebhooks(project.id)) {
        const webhook = { projectId: project.id, webhookId: id };
        const name = `webhook ${id} of project ${project.id}`;
        if (isDue(url.split("#")[1], created_at)) due.set(name, () => user.deleteWebhook(webhook));
      }
    });
  }
  await Promise.all([...due].map(([name, remove]) => orReport(name, remove)));
  if (failures.length > 0) throw new CheckFailed(`remove by hand: ${failures.join("; ")}`);
  return due.size;
}
