import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { uuid } from "../../functions/schema/input.ts";
import { assert, expectData, expectError, expectNoContent } from "./assertions.ts";
import { type CheckContext, type CheckGroup, requireResource, signedIn } from "./context.ts";
import { CheckFailed, CheckSkipped } from "./findings.ts";
import { pause } from "./stage-client.ts";

/* A webhook's life. It is disabled as soon as it is made: of a project's own events nothing goes to the smoke test's receiver. */

/** A name that never resolves (RFC 6761): nobody's host. */
const NOWHERE = "https://smoke.invalid/";
const POLL_EVERY_MS = 250;

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

const madeWebhook = ({ webhook }: CheckContext) => requireResource(webhook, "no webhook was made");

function administered(scene: CheckContext) {
  const { projectId } = scene.options;
  const projects = signedIn(scene);
  const wanted = projects.filter(({ id }) => projectId === undefined || id === projectId);
  if (wanted.length === 0)
    throw new CheckSkipped(projectId ? "--project is none of the user's" : "the user has no project");
  const project = wanted.find(({ role }) => role === "admin");
  if (!project)
    throw new CheckSkipped(projectId ? "the user only views that project" : "the user administers no project");
  scene.project = project;
  return project;
}

/** Sends a test delivery and waits for what becomes of it. */
async function deliverTest(scene: CheckContext): Promise<{ id: string; told: string }> {
  const { send, options, patienceMs, stop } = scene;
  const { path } = madeWebhook(scene);
  const { token } = options;
  const { id } = expectData(await send("POST", `${path}/test`, { token }), 202, deliveryRecord);
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const answer = await send("GET", `${path}/deliveries/${id}`, { token });
    const { status, attempts } = expectData(answer, 200, deliveryRecord);
    const attempt = attempts?.at(-1);
    if (status === "succeeded" && attempt) {
      return { id, told: `answered ${attempt.status_code} after ${attempt.duration_ms} ms` };
    }
    if (status !== "pending") {
      const reason = attempt?.error_code === "http_status" ? `status ${attempt.status_code}` : attempt?.error_code;
      throw new CheckFailed(`the test delivery ${status}: ${reason ?? "no attempt"}. ${attempt?.hint ?? ""}`.trim());
    }
    if (Date.now() > giveUpAt) {
      throw new CheckFailed(
        `the test delivery is still pending after ${patienceMs / 1000} s: nobody takes it from the queue`,
      );
    }
    await pause(POLL_EVERY_MS, stop);
  }
}

const withReceiver = (scene: CheckContext) => {
  madeWebhook(scene);
  if (!scene.options.receiver) throw new CheckSkipped("give --receiver <https url> to have a test delivery sent there");
};

const deliverySections = ["A receiver complains", "deliveries-waiting", "delivery-errors"];

export const webhooks: CheckGroup = {
  title: "Webhooks",
  sections: ["api-errors", "table-throttles"],
  checks: [
    {
      claim: "a project of others does not exist",
      async run(scene) {
        signedIn(scene);
        const { send, options } = scene;
        expectError(await send("GET", webhooksPath(randomUUID()), { token: options.token }), "not_found");
        return undefined;
      },
    },
    {
      claim: "a viewer may look but not change",
      async run(scene) {
        const viewed = signedIn(scene).find(({ role }) => role === "viewer");
        // Who is asked to be an admin of one project need not be a viewer of another.
        if (!viewed) throw new CheckSkipped("the user is nowhere a viewer", { isExcused: true });
        const { send, options } = scene;
        const path = webhooksPath(viewed.id);
        expectData(await send("GET", path, { token: options.token }), 200, z.array(webhookState));
        // Of a webhook that does not exist: the check must not be able to do harm.
        expectError(await send("DELETE", `${path}/${randomUUID()}`, { token: options.token }), "forbidden");
        return undefined;
      },
    },
    {
      claim: "an address inside the network is no receiver",
      async run(scene) {
        const { id } = administered(scene);
        const { send, options, mark } = scene;
        const inside = { url: `https://169.254.169.254/#${mark}`, events: ["deploy.failed"] };
        const answer = await send("POST", webhooksPath(id), { token: options.token, body: inside });
        expectError(answer, "validation_error");
        return undefined;
      },
    },
    {
      claim: "a webhook is made",
      async run(scene) {
        const { id: projectId, name } = administered(scene);
        const { send, options, mark, listener, secrets } = scene;
        const { receiver } = options;
        const url = receiver === undefined ? NOWHERE : receiver === "listen" ? listener?.url : receiver.url;
        const body = { url: `${url}#${mark}`, events: ["deploy.failed"] };
        const path = webhooksPath(projectId);
        const answer = await send("POST", path, { token: options.token, body });
        const { id, secret, ...rest } = expectData(answer, 201, createdWebhook);
        secrets.add(secret);
        scene.webhook = { id, path: `${path}/${id}`, secret };
        scene.made.set(scene.webhook.path, "webhook");
        assert(rest.project_id === projectId, `POST ${path}: project_id is another project`);
        return `in ${name}`;
      },
    },
    {
      claim: "it is listed at once, and its secret never shown again",
      async run(scene) {
        const { id, path, secret } = madeWebhook(scene);
        const answer = await scene.send("GET", path.replace(`/${id}`, ""), { token: scene.options.token });
        const entry = expectData(answer, 200, z.array(webhookState)).find((each) => each.id === id);
        assert(entry !== undefined, `${answer.request}: the webhook that was just made is not in the list`);
        assert(!answer.text.includes(secret), `${answer.request}: the list shows a secret, which is to be shown once`);
        return undefined;
      },
    },
    {
      claim: "it is disabled",
      async run(scene) {
        const { path } = madeWebhook(scene);
        const answer = await scene.send("PATCH", path, { token: scene.options.token, body: { enabled: false } });
        const { enabled, disabled_reason } = expectData(answer, 200, webhookState);
        assert(
          !enabled && disabled_reason === "manual",
          `${answer.request}: it is not disabled with the reason manual`,
        );
        return undefined;
      },
    },
    {
      claim: "a test delivery arrives",
      sections: deliverySections,
      async run(scene) {
        withReceiver(scene);
        const { id, told } = await deliverTest(scene);
        scene.listener?.verify(id, madeWebhook(scene).secret);
        return scene.listener ? `${told}, both signatures verified` : told;
      },
    },
    {
      claim: "its secret is rotated",
      sections: deliverySections,
      async run(scene) {
        const webhook = madeWebhook(scene);
        const { send, options, secrets, listener } = scene;
        const path = `${webhook.path}/rotate-secret`;
        const answer = await send("POST", path, { token: options.token, body: { overlap_seconds: 60 } });
        const { secret } = expectData(answer, 200, rotated);
        secrets.add(secret);
        const previous = webhook.secret;
        webhook.secret = secret;
        assert(secret !== previous, `${answer.request}: the new secret is the old one`);
        if (!listener) return undefined;
        const { id } = await deliverTest(scene);
        listener.verify(id, secret, [previous]);
        return "a delivery is signed with the new and the old";
      },
    },
    {
      claim: "it is deleted, and gone",
      async run(scene) {
        const { path } = madeWebhook(scene);
        const { token } = scene.options;
        expectNoContent(await scene.send("DELETE", path, { token }));
        scene.made.delete(path);
        expectError(await scene.send("GET", path, { token }), "not_found");
        return undefined;
      },
    },
  ],
};
