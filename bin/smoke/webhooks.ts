import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { uuid } from "../../functions/schema/input.ts";
import { assert, expectData, expectError, expectNoContent } from "./assertions.ts";
import { type CheckContext, type CheckGroup, requireProjects, requireResource } from "./context.ts";
import { CheckFailed, CheckSkipped } from "./findings.ts";
import { pause } from "./stage-client.ts";

/* The lifecycle of a webhook. It is disabled right after its creation, so that it never receives the project's own events. */

/** A host name that never resolves (RFC 6761). */
const UNRESOLVABLE_URL = "https://smoke.invalid/";
const POLL_INTERVAL_MS = 250;

const webhooksPath = (projectId: string) => `/v1/projects/${projectId}/webhooks`;

const createdWebhook = z.object({
  id: uuid,
  project_id: uuid,
  url: z.string(),
  secret: z.string().check(z.regex(/^whsec_\w{32,}$/)),
  events: z.array(z.string()),
  created_at: z.iso.datetime(),
});
const webhookState = z.object({ id: uuid, enabled: z.boolean(), disabled_reason: z.nullable(z.string()) });
const rotated = z.object({ id: uuid, secret: createdWebhook.shape.secret });
const deliveryRecord = z.object({
  id: uuid,
  status: z.string(),
  attempts: z.optional(
    z.array(
      z.object({
        status_code: z.nullable(z.number()),
        error_code: z.nullable(z.string()),
        hint: z.nullable(z.string()),
        duration_ms: z.number(),
      }),
    ),
  ),
});

const requireWebhook = ({ webhook }: CheckContext) => requireResource(webhook, "no webhook was created");

/** Selects the project of the webhook checks. @throws CheckSkipped when the user is not an admin of it */
function selectProject(context: CheckContext) {
  const { projectId } = context.options;
  const projects = requireProjects(context);
  const wanted = projects.filter(({ id }) => projectId === undefined || id === projectId);
  if (wanted.length === 0)
    throw new CheckSkipped(projectId ? "the user is not a member of --project" : "the user has no project");
  const project = wanted.find(({ role }) => role === "admin");
  if (!project)
    throw new CheckSkipped(
      projectId ? "the user is only a viewer of --project" : "the user is not an admin of any project",
    );
  context.project = project;
  return project;
}

/**
 * Sends a test delivery and waits for its result.
 * @throws CheckFailed when it fails, or is still pending after `deliveryTimeoutMs`
 */
async function deliverTest(context: CheckContext): Promise<{ id: string; note: string }> {
  const { sendAsUser, deliveryTimeoutMs, stop } = context;
  const { path } = requireWebhook(context);
  const { id } = expectData(await sendAsUser("POST", `${path}/test`), 202, deliveryRecord);
  const giveUpAt = Date.now() + deliveryTimeoutMs;
  for (;;) {
    const response = await sendAsUser("GET", `${path}/deliveries/${id}`);
    const { status, attempts } = expectData(response, 200, deliveryRecord);
    const attempt = attempts?.at(-1);
    if (status === "succeeded" && attempt) {
      return { id, note: `status ${attempt.status_code} after ${attempt.duration_ms} ms` };
    }
    if (status !== "pending") {
      const reason = attempt?.error_code === "http_status" ? `status ${attempt.status_code}` : attempt?.error_code;
      throw new CheckFailed(`the test delivery ${status}: ${reason ?? "no attempt"}. ${attempt?.hint ?? ""}`.trim());
    }
    if (Date.now() > giveUpAt) {
      throw new CheckFailed(
        `the test delivery is still pending after ${deliveryTimeoutMs / 1000} s: the sender does not process its queue`,
      );
    }
    await pause(POLL_INTERVAL_MS, stop);
  }
}

const requireReceiver = (context: CheckContext) => {
  requireWebhook(context);
  if (!context.options.receiver) throw new CheckSkipped("pass --receiver <https url> to send a test delivery");
};

const deliverySections = ["A receiver complains", "deliveries-waiting", "delivery-errors"];

export const webhooks: CheckGroup = {
  title: "Webhooks",
  sections: ["api-errors", "table-throttles"],
  checks: [
    {
      claim: "a project of other users returns 404",
      async run(context) {
        requireProjects(context);
        expectError(await context.sendAsUser("GET", webhooksPath(randomUUID())), "not_found");
      },
    },
    {
      claim: "a viewer can read but not change",
      async run(context) {
        const viewed = requireProjects(context).find(({ role }) => role === "viewer");
        // Excused: the run needs an admin of one project, not also a viewer of another.
        if (!viewed) throw new CheckSkipped("the user is not a viewer of any project", { isExcused: true });
        const { sendAsUser } = context;
        const path = webhooksPath(viewed.id);
        expectData(await sendAsUser("GET", path), 200, z.array(webhookState));
        // A webhook that does not exist: even if the check fails, nothing is deleted.
        expectError(await sendAsUser("DELETE", `${path}/${randomUUID()}`), "forbidden");
      },
    },
    {
      claim: "a receiver with a private address is rejected",
      async run(context) {
        const { id } = selectProject(context);
        const privateReceiver = { url: `https://169.254.169.254/#${context.mark}`, events: ["deploy.failed"] };
        const response = await context.sendAsUser("POST", webhooksPath(id), { body: privateReceiver });
        expectError(response, "validation_error");
      },
    },
    {
      claim: "a webhook is created",
      async run(context) {
        const { id: projectId, name } = selectProject(context);
        const { sendAsUser, options, mark, listener, secrets } = context;
        const { receiver } = options;
        const url = receiver === undefined ? UNRESOLVABLE_URL : receiver === "listen" ? listener?.url : receiver.url;
        const body = { url: `${url}#${mark}`, events: ["deploy.failed"] };
        const path = webhooksPath(projectId);
        const response = await sendAsUser("POST", path, { body });
        const { id, secret, ...rest } = expectData(response, 201, createdWebhook);
        secrets.add(secret);
        context.webhook = { id, path: `${path}/${id}`, secret };
        context.created.set(context.webhook.path, "webhook");
        assert(rest.project_id === projectId, `POST ${path}: project_id is not the requested project`);
        return `in ${name}`;
      },
    },
    {
      claim: "the list shows the new webhook without its secret",
      async run(context) {
        const { id, path, secret } = requireWebhook(context);
        const response = await context.sendAsUser("GET", path.replace(`/${id}`, ""));
        const entry = expectData(response, 200, z.array(webhookState)).find((each) => each.id === id);
        assert(entry !== undefined, `${response.request}: the list does not contain the webhook that was just created`);
        assert(
          !response.text.includes(secret),
          `${response.request}: the list contains a secret, which only creation and rotation may show`,
        );
      },
    },
    {
      claim: "the webhook is disabled",
      async run(context) {
        const { path } = requireWebhook(context);
        const response = await context.sendAsUser("PATCH", path, { body: { enabled: false } });
        const { enabled, disabled_reason } = expectData(response, 200, webhookState);
        assert(
          !enabled && disabled_reason === "manual",
          `${response.request}: enabled is not false, or disabled_reason is not "manual"`,
        );
      },
    },
    {
      claim: "a test delivery arrives",
      sections: deliverySections,
      async run(context) {
        requireReceiver(context);
        const { id, note } = await deliverTest(context);
        context.listener?.verify(id, requireWebhook(context).secret);
        return context.listener ? `${note}, both signatures verified` : note;
      },
    },
    {
      claim: "the secret is rotated",
      sections: deliverySections,
      async run(context) {
        const webhook = requireWebhook(context);
        const { sendAsUser, secrets, listener } = context;
        const path = `${webhook.path}/rotate-secret`;
        const response = await sendAsUser("POST", path, { body: { overlap_seconds: 60 } });
        const { secret } = expectData(response, 200, rotated);
        secrets.add(secret);
        const previous = webhook.secret;
        webhook.secret = secret;
        assert(secret !== previous, `${response.request}: the new secret equals the old one`);
        if (!listener) return undefined;
        const { id } = await deliverTest(context);
        listener.verify(id, secret, [previous]);
        return "a delivery is signed with both secrets";
      },
    },
    {
      claim: "the webhook is deleted, and then returns 404",
      async run(context) {
        const { path } = requireWebhook(context);
        expectNoContent(await context.sendAsUser("DELETE", path));
        context.created.delete(path);
        expectError(await context.sendAsUser("GET", path), "not_found");
      },
    },
  ],
};
