import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { logSink } from "../../functions/platform/log.ts";
import { type DemoIssuer, demoJob, startDemoIssuer } from "./demo-issuer.ts";
import { call, heading, request, show, step, verdict } from "./demo-page.ts";
import { demoUser, seedDemoUser } from "./demo-user.ts";
import { mintToken } from "./mint-token.ts";
import type { LocalSettings } from "./settings.ts";

/* The demo of a CI job without a stored key. The issuer on this machine names its claims as GitHub does. */

const AUDIENCE = "deployments";

/** Runs the demo on a service of its own, because a running one does not know the issuer. Deletes all data. */
export async function runCiDemo(settings: LocalSettings): Promise<void> {
  const issuer = await startDemoIssuer();
  process.env.OIDC_ISSUERS = JSON.stringify([
    { name: "ci", issuer: issuer.url, jwks_uri: issuer.jwksUri, audience: AUDIENCE },
  ]);
  const { startService } = await import("./service.ts");
  const dataDir = mkdtempSync(join(tmpdir(), "demo-"));
  const service = await startService({ ...settings, dataDir, port: 0, sqsPort: 0 });
  try {
    await seedDemoUser();
    await showSteps(service.baseUrl, mintToken(settings.jwtSecret, demoUser.userId), issuer);
  } finally {
    issuer.stop();
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function showSteps(baseUrl: string, adminToken: string, issuer: DemoIssuer): Promise<void> {
  const project = `/v1/projects/${demoUser.projectId}`;
  const trusts = `${project}/trusted-workflows`;
  const webhooks = `${project}/webhooks`;
  const tokenOf = (claims: object) => issuer.sign({ aud: AUDIENCE, ...demoJob, ...claims });
  heading("A CI job without a stored key, start to finish");

  step("An admin trusts the workflows of a repository on its main branch", `POST ${trusts}`);
  const permissions = ["webhooks:read", "webhooks:write"];
  const input = { issuer: "ci", repository_id: demoJob.repository_id, ref: demoJob.ref, permissions };
  const trust = (await call(baseUrl, adminToken, "POST", trusts, input)).data;
  show(`repository ${trust.repository_id} of ${trust.issuer}, ${trust.ref}: ${trust.permissions.join(", ")}`);

  step("A job on main gets a token from its CI system", `${issuer.url}, valid for five minutes`);
  const token = tokenOf({});
  show(JSON.stringify({ aud: AUDIENCE, ...demoJob }));
  show("nothing is stored: no secret in the repository, and none here");

  step("The job creates a webhook with it", `POST ${webhooks}`);
  const lines: Record<string, unknown>[] = [];
  logSink.write = (_level, line) => void lines.push(line);
  const webhook = await call(baseUrl, token, "POST", webhooks, {
    url: "https://pr-7.preview.example.com/hooks",
    events: ["deploy.succeeded"],
  });
  logSink.write = () => {};
  const { user_id, repository, ref, run_id } = lines.find(({ message }) => message === "request") ?? {};
  show(`${webhook.data.url} receives ${webhook.data.events.join(", ")}`);
  show(`the log names ${user_id}, ${repository}, ${ref}, run ${run_id}`);

  step("The service shows what the token may do", "GET /v1/api-keys/current");
  const { data: current } = await call(baseUrl, token, "GET", "/v1/api-keys/current");
  show(`${current.type} in ${current.project_ids.length} project: ${current.permissions.join(", ")}`);

  step("Everything else is refused", "401, 403, 404");
  const refused = async (
    what: string,
    credential: string,
    method: string,
    path: string,
    expected: string,
    body?: object,
  ) => {
    const { status, json } = await request(baseUrl, credential, method, path, body);
    const actual = json?.error?.code ?? String(status);
    show(`${verdict(actual === expected, `${status} ${actual}`, `${status} ${actual}`).padEnd(40)}  ${what}`);
  };
  const otherRepository = tokenOf({ repository_id: "4242" });
  const pullRequest = tokenOf({ ref: "refs/pull/7/merge" });
  const otherService = tokenOf({ aud: "https://other.example.com" });
  await refused("another repository of the same name", otherRepository, "GET", webhooks, "workflow_not_trusted");
  await refused("a pull request of this repository", pullRequest, "GET", webhooks, "workflow_not_trusted");
  await refused("a token for another service", otherService, "GET", webhooks, "invalid_token");
  await refused("another project", token, "GET", `/v1/projects/${randomUUID()}/webhooks`, "not_found");
  const webhookPath = `${webhooks}/${webhook.data.id}`;
  await refused(
    "a permission that it was not given",
    token,
    "GET",
    `${webhookPath}/deliveries`,
    "insufficient_permission",
  );
  await refused("an API key for later", token, "POST", "/v1/api-keys", "session_required", { name: "kept" });

  step("The admin ends the trust", `DELETE ${trusts}/${trust.id}`);
  await call(baseUrl, adminToken, "DELETE", `${trusts}/${trust.id}`);
  await refused("the next request with the same token", token, "GET", webhooks, "workflow_not_trusted");
}
