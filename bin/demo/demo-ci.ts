import { randomUUID } from "node:crypto";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { createClient } from "../../packages/client/src/client.ts";
import type { ErrorCode } from "../../packages/client/src/errors.ts";
import { mintToken } from "../command/mint-token.ts";
import type { LocalSettings } from "../command/settings.ts";
import { type DemoIssuer, demoJob, startDemoIssuer } from "./demo-issuer.ts";
import { heading, rejectionOf, show, step, verdict } from "./demo-page.ts";
import { startDemoService } from "./demo-service.ts";
import { demoUser } from "./demo-user.ts";

/* The demo of a CI job without a stored key. The issuer on this machine names its claims as GitHub does. */

const AUDIENCE = "deployments";

/** Runs the demo on a service of its own, because a running one does not know the issuer. Deletes all data. */
export async function runCiDemo(settings: LocalSettings): Promise<void> {
  const issuer = await startDemoIssuer();
  process.env.OIDC_ISSUERS = JSON.stringify([
    { name: "ci", issuer: issuer.url, jwks_uri: issuer.jwksUri, audience: AUDIENCE },
  ]);
  try {
    const service = await startDemoService(settings);
    await showSteps(service.baseUrl, mintToken(settings.jwtSecret, demoUser.userId), issuer).finally(service.stop);
  } finally {
    issuer.stop();
  }
}

async function showSteps(baseUrl: string, adminToken: string, issuer: DemoIssuer): Promise<void> {
  const { projectId } = demoUser;
  const trusts = `/v1/projects/${projectId}/trusted-workflows`;
  const webhooks = `/v1/projects/${projectId}/webhooks`;
  const admin = createClient({ baseUrl, token: adminToken });
  const tokenOf = (claims: object) => issuer.sign({ aud: AUDIENCE, ...demoJob, ...claims });
  const jobWith = (claims: object) => createClient({ baseUrl, token: tokenOf(claims) });
  heading("A CI job without a stored key, start to finish");

  step("An admin trusts the workflows of a repository on its main branch", `POST ${trusts}`);
  const { repository_id, ref } = demoJob;
  const trust = await admin.createTrustedWorkflow(projectId, {
    ...{ issuer: "ci", repository_id, ref },
    permissions: ["webhooks:read", "webhooks:write"],
  });
  show(`repository ${repository_id} of ${trust.issuer}, ${ref}: ${trust.permissions.join(", ")}`);

  step("A job on main gets a token from its CI system", `${issuer.url}, valid for five minutes`);
  const job = jobWith({});
  show(JSON.stringify({ aud: AUDIENCE, ...demoJob }));
  show("nothing is stored: no secret in the repository, and none here");

  step("The job creates a webhook with it", `POST ${webhooks}`);
  const lines: Record<string, unknown>[] = [];
  logSink.write = (_level, line) => void lines.push(line);
  const { id, url, events } = await job.createWebhook(projectId, {
    url: "https://pr-7.preview.example.com/hooks",
    events: ["deploy.succeeded"],
  });
  logSink.write = () => {};
  const logged = lines.find(({ message }) => message === "request") ?? {};
  show(`${url} receives ${events.join(", ")}`);
  show(`the log names ${logged.user_id}, ${logged.repository}, ${logged.ref}, run ${logged.run_id}`);

  step("The service shows what the token may do", "GET /v1/api-keys/current");
  const { type, project_ids, permissions } = await job.getCurrentCredential();
  show(`${type} in ${project_ids?.length} project: ${permissions?.join(", ")}`);

  step("Everything else is refused", "401, 403, 404");
  const refused = async (what: string, expected: ErrorCode, request: Promise<unknown>) => {
    const { status, code } = await rejectionOf(request);
    show(`${verdict(code === expected, `${status} ${code}`, `${status} ${code}`).padEnd(40)}  ${what}`);
  };
  const otherRepository = jobWith({ repository_id: "4242" });
  const pullRequest = jobWith({ ref: "refs/pull/7/merge" });
  const otherService = jobWith({ aud: "https://other.example.com" });
  await refused("another repository of the same name", "workflow_not_trusted", otherRepository.listWebhooks(projectId));
  await refused("a pull request of this repository", "workflow_not_trusted", pullRequest.listWebhooks(projectId));
  await refused("a token for another service", "invalid_token", otherService.listWebhooks(projectId));
  await refused("another project", "not_found", job.listWebhooks(randomUUID()));
  await refused(
    "a permission that it was not given",
    "insufficient_permission",
    job.listDeliveries({ projectId, webhookId: id }),
  );
  await refused("an API key for later", "session_required", job.createApiKey({ name: "kept" }));

  step("The admin ends the trust", `DELETE ${trusts}/${trust.id}`);
  await admin.deleteTrustedWorkflow(projectId, trust.id);
  await refused("the next request with the same token", "workflow_not_trusted", job.listWebhooks(projectId));
}
