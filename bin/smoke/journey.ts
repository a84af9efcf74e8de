import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Project, WebhookRef } from "../../packages/client/src/client.ts";
import { ApiError } from "../../packages/client/src/errors.ts";
import { verifyWebhook } from "../../packages/client/src/verify-webhook.ts";
import { rejectionOf } from "../demo/demo-page.ts";
import { assert, type CheckContext, type CheckGroup } from "./check.ts";

/*
 * The journey of the demo on a stage, with the typed client: a key from its creation to its rejection, and a webhook from its
 * creation to its deletion. The webhook is disabled at once, so that it never receives the project's own events.
 */

/** A host name that never resolves (RFC 6761). */
const UNRESOLVABLE_URL = "https://smoke.invalid/";
const POLL_MS = 250;

/** @throws Error unless the API rejects the request with this code */
async function expectRejection(request: Promise<unknown>, code: string): Promise<void> {
  const rejection = await rejectionOf(request);
  assert(rejection.code === code, `expected ${code}, got ${rejection.status} ${rejection.code}`);
}

export const journey: CheckGroup = {
  title: "A key and a webhook",
  sections: ["api-errors", "rejected-credentials", "A receiver complains", "deliveries-waiting"],
  async run(context, check) {
    const { options, clientOf, mark, secrets, receiver } = context;
    const user = clientOf(options.token);
    const { projectId, projectIds } = await check("the JWT is that of an admin of a project", async () => {
      const projects = await user.listProjects();
      context.isAccepted = true;
      const project = projects.find(isOfAdmin);
      assert(project !== undefined, "the user is not an admin of any project");
      return { projectId: project.id, projectIds: projects.map((each) => each.id).join() };
    });

    const { id, key } = await check("a key is created, and the list does not show it", async () => {
      const created = await user.createApiKey({ name: mark });
      secrets.add(created.key);
      const list = await user.listApiKeys();
      assert(
        list.some((each) => each.id === created.id),
        "the list does not contain the key that was just created",
      );
      assert(!JSON.stringify(list).includes(created.key), "the list contains the key, which only creation may show");
      return created;
    });
    const holder = clientOf(key);
    await check("the key sees the projects of its owner, and cannot create keys", async () => {
      const seen = (await holder.listProjects()).map((each) => each.id).join();
      assert(seen === projectIds, "the key sees other projects than its owner does");
      await expectRejection(holder.createApiKey({ name: mark }), "session_required");
    });

    const claim = "a webhook is created with the key, and disabled";
    const webhook = await check(claim, async () => {
      const target = typeof options.receiver === "object" ? options.receiver.url : receiver?.url;
      const url = target ?? UNRESOLVABLE_URL;
      const created = await holder.createWebhook(projectId, { name: mark, url, events: ["deploy.failed"] });
      secrets.add(created.secret);
      const ref = { projectId, webhookId: created.id, secret: created.secret };
      assert(!(await user.updateWebhook(ref, { enabled: false })).enabled, "the webhook is still enabled");
      return ref;
    });
    if (options.receiver) {
      await check("a test delivery arrives", () => deliver(context, user, webhook), String);
    }
    await check("the webhook is deleted, and then returns 404", async () => {
      await user.deleteWebhook(webhook);
      await expectRejection(user.getWebhook(webhook), "not_found");
    });
    await check("the key is deleted, and the next request with it is rejected", async () => {
      await user.deleteApiKey(id);
      await expectRejection(holder.listProjects(), "invalid_api_key");
    });
  },
};

const isOfAdmin = ({ role }: Project): boolean => role === "admin";

/** Sends a test delivery and waits for its result. @returns what is known of it @throws Error unless it succeeds in time */
async function deliver(
  { limits, stop, receiver }: CheckContext,
  user: Client,
  webhook: WebhookRef & { secret: string },
): Promise<string> {
  const { id } = await user.sendTestDelivery(webhook);
  const giveUpAt = Date.now() + limits.deliveryMs;
  for (;;) {
    const { status, attempts } = await user.getDelivery(webhook, id);
    const { error_code, status_code, duration_ms, hint = "" } = attempts.at(-1) ?? {};
    if (status === "succeeded") {
      const note = `status ${status_code} after ${duration_ms} ms`;
      if (!receiver) return note;
      const delivery = receiver.deliveries.find(({ headers }) => headers["x-service-delivery"] === id);
      assert(delivery !== undefined, "the stage reports the delivery as succeeded, but it did not arrive here");
      for (const scheme of ["standard", "body"] as const) {
        await verifyWebhook({ ...delivery, secret: webhook.secret, scheme });
      }
      return `${note}, both signatures verified`;
    }
    const reason = error_code === "http_status" ? `status ${status_code}` : error_code;
    assert(status === "pending", `the test delivery ${status}: ${reason ?? "no attempt"}. ${hint}`.trim());
    const isLate = `is still pending after ${limits.deliveryMs / 1000} s: the sender does not process its queue`;
    assert(Date.now() < giveUpAt, `the test delivery ${isLate}`);
    await sleep(POLL_MS, undefined, { signal: stop });
  }
}

const MARK = /^smoke-\d{8}T\d{6}Z-[0-9a-f]{6}$/;
/** Age from which a marked resource belongs to a killed run. A run takes about a minute. */
const ABANDONED_AFTER_MS = 3600 * 1000;

/**
 * Deletes what this run created, found by its mark, also when the response to its creation was lost; and what killed runs
 * left behind.
 * @returns the number of deleted resources
 * @throws Error that names what could not be deleted
 */
export async function removeAll({ options, clientOf, mark, isAccepted }: CheckContext): Promise<number> {
  if (!isAccepted) return 0;
  const user = clientOf(options.token);
  const failures: string[] = [];
  let count = 0;
  const orReport = (name: string, work: () => Promise<void>) =>
    work().catch((error: Error) => {
      // 404: already deleted, for example by a parallel run.
      if (!(error instanceof ApiError && error.status === 404)) failures.push(`${name} (${error.message})`);
    });
  const remove = async (name: string, found: string | undefined, createdAt: string, work: () => Promise<void>) => {
    const isAbandoned = MARK.test(found ?? "") && Date.now() - Date.parse(createdAt) > ABANDONED_AFTER_MS;
    if (found !== mark && !isAbandoned) return;
    count += 1;
    await orReport(name, work);
  };
  await orReport(`any API key named ${mark}`, async () => {
    for (const { id, name, created_at } of await user.listApiKeys()) {
      await remove(`API key ${id}`, name, created_at, () => user.deleteApiKey(id));
    }
  });
  await orReport(`any webhook named ${mark}`, async () => {
    const project = (await user.listProjects()).find(isOfAdmin);
    if (project === undefined) return;
    for (const { id, name, created_at } of await user.listWebhooks(project.id)) {
      const webhook = { projectId: project.id, webhookId: id };
      await remove(`webhook ${id} of project ${project.id}`, name, created_at, () => user.deleteWebhook(webhook));
    }
  });
  if (failures.length > 0) throw new Error(`remove by hand: ${failures.join("; ")}`);
  return count;
}
