import type { TrustedWorkflow } from "../../../../functions/identity/trusted-workflows/trusted-workflow.ts";
import {
  grantIn,
  grantWithoutProject,
  isTrusted,
  trustDigest,
} from "../../../../functions/identity/trusted-workflows/workflow-grant.ts";

/* Which workflows a trust matches, and what the trusts of a workflow allow. */

const trust = (changes: Partial<TrustedWorkflow> = {}): TrustedWorkflow => ({
  id: "01",
  project_id: "p1",
  issuer: "github",
  issuer_url: "https://token.actions.githubusercontent.com",
  repository_id: "74",
  permissions: ["webhooks:read"],
  created_at: "2026-01-01T00:00:00.000Z",
  ...changes,
});
const file = "acme/shop/.github/workflows/deploy.yml@refs/heads/main";
const workflow = {
  repositoryId: "74",
  ownerId: "65",
  ref: "refs/heads/main",
  environment: "prod",
  workflowFile: file,
  event: "push",
};

test.each<[boolean, string, Partial<TrustedWorkflow>]>([
  [true, "without further fields", {}],
  [true, "with the same claims", { repository_owner_id: "65", ref: "refs/heads/main", environment: "prod" }],
  [true, "with the same file and event", { job_workflow_ref: file, event_name: "push" }],
  [false, "of another repository", { repository_id: "75" }],
  [false, "of another owner", { repository_owner_id: "66" }],
  [false, "of another ref", { ref: "refs/heads/mai" }],
  [false, "of a ref in another case", { ref: "refs/heads/Main" }],
  [false, "of another environment", { environment: "prod " }],
  [false, "of another file", { job_workflow_ref: file.replace("deploy", "triage") }],
  [false, "of the file at another ref", { job_workflow_ref: file.replace("main", "feature") }],
  [false, "of another event", { event_name: "issue_comment" }],
])("is %p for a trust %s", (expected, _title, changes) => {
  expect(isTrusted(workflow, trust(changes))).toBe(expected);
  // The key of a digest names the repository.
  if (!("repository_id" in changes)) expect(isTrusted(workflow, trustDigest(trust(changes)))).toBe(expected);
});

test.each(["repository_owner_id", "ref", "environment", "job_workflow_ref", "event_name"])(
  "a workflow without a claim matches no trust with %s",
  (field) => {
    expect(isTrusted({ repositoryId: "74" }, trust({ [field]: "65" }))).toBe(false);
    expect(isTrusted({ repositoryId: "74" }, trustDigest(trust({ [field]: "65" })))).toBe(false);
    expect(isTrusted({ repositoryId: "74" }, trust())).toBe(true);
  },
);

test("a digest has no claims, is small whatever their length, and is not a trusted workflow to a release that does not know it", () => {
  const long = "\u{65e5}".repeat(255);
  const full = { repository_owner_id: "1".repeat(20), ref: long, environment: long, job_workflow_ref: long };
  const digest = trustDigest(trust({ ...full, event_name: long, name: long }));
  expect(Object.keys(digest).sort()).toEqual(["conditions", "digest", "id", "permissions", "project_id"]);
  expect(JSON.stringify(digest).length).toBeLessThan(250);
});

test("a digest with a condition of a later release matches nothing", () => {
  const digest = trustDigest(trust());
  expect(isTrusted(workflow, digest)).toBe(true);
  expect(isTrusted(workflow, { ...digest, conditions: ["runner" as "ref"] })).toBe(false);
});

describe("the grant", () => {
  const trusts = [
    trust({ id: "03", permissions: ["webhooks:write", "projects:read"] }),
    trust({ id: "02", permissions: ["webhooks:read"] }),
    trust({ id: "01", project_id: "p2", permissions: ["projects:read", "deliveries:read"] }),
  ];

  test("in a project adds up its trusts", () => {
    expect(grantIn(trusts.slice(0, 2))).toEqual({
      trustId: "02",
      projectIds: ["p1"],
      permissions: ["projects:read", "webhooks:read", "webhooks:write"],
    });
  });

  test("without a project is what all projects give", () => {
    expect(grantWithoutProject(trusts)).toEqual({
      trustId: "01",
      projectIds: ["p1", "p2"],
      permissions: ["projects:read"],
    });
  });

  test("without a project ignores a stranger's trust that gives less than listing projects", () => {
    const stranger = trust({ id: "00", project_id: "p9", permissions: ["events:read"] });
    expect(grantWithoutProject([stranger, ...trusts])).toEqual(grantWithoutProject(trusts));
    expect(grantWithoutProject([stranger])).toMatchObject({ projectIds: ["p9"], permissions: ["events:read"] });
  });

  test("without a project is for the 20 projects with the oldest trusts", () => {
    const many = Array.from({ length: 30 }, (_, index) => trust({ project_id: `p${index}` }));
    expect(grantWithoutProject(many)?.projectIds).toEqual(many.slice(0, 20).map(({ project_id }) => project_id));
  });

  test("is undefined without a trust", () => {
    expect([grantIn([]), grantWithoutProject([])]).toEqual([undefined, undefined]);
  });
});
