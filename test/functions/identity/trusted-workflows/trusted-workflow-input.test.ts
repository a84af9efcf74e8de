import { ApiError } from "../../../../functions/foundation/platform/errors.ts";
import { parse } from "../../../../functions/foundation/schema/input.ts";
import { trustedWorkflowInput } from "../../../../functions/identity/trusted-workflows/trusted-workflow-input.ts";

/* What a trust accepts. */

const input = { issuer: "github", repository_id: "74", permissions: ["webhooks:read"] };

test("every field is accepted, and permissions are listed once", () => {
  const all = {
    ...input,
    name: "shop",
    repository_owner_id: "65",
    ref: "refs/tags/v1.0-ü",
    environment: "Prod (EU)",
    job_workflow_ref: "acme/shop/.github/workflows/deploy.yml@refs/heads/main",
    event_name: "workflow_dispatch",
    permissions: ["webhooks:read", "webhooks:write", "webhooks:read"],
  };
  expect(parse(trustedWorkflowInput(), all)).toEqual({ ...all, permissions: ["webhooks:read", "webhooks:write"] });
  expect(parse(trustedWorkflowInput(), input)).toEqual(input);
});

test.each<[string, object, string]>([
  ["a claim that is not a field", { actor: "octocat" }, "actor is not a known field"],
  ["sub", { sub: "repo:acme/shop:*" }, "sub is not a known field"],
  [
    "the name of a repository",
    { repository_id: "acme/shop" },
    "repository_id must be the numeric id as a string of digits",
  ],
  ["a number", { repository_id: 74 }, "repository_id must be a string of digits"],
  ["no repository", { repository_id: undefined }, "repository_id is required"],
  ["a repository with a leading zero", { repository_id: "074" }, "repository_id must be the numeric id"],
  ["a repository with a separator of keys", { repository_id: "74#1" }, "repository_id must be the numeric id"],
  ["the name of an owner", { repository_owner_id: "acme" }, "repository_owner_id must be the numeric id"],
  ["the name of a branch", { ref: "main" }, "ref must be a full ref such as refs/heads/main"],
  ["a wildcard", { ref: "refs/heads/*" }, "ref must be a full ref such as refs/heads/main; wildcards are not accepted"],
  ["an empty ref", { ref: "" }, "ref must not be empty"],
  ["a ref of 256 characters", { ref: "refs/heads/".padEnd(256, "x") }, "ref must be at most 255 characters long"],
  [
    "a ref with a line break",
    { ref: "refs/heads/main\n" },
    "ref must not contain control or invisible characters: it has \\u000a",
  ],
  ["no ref", { ref: null }, "ref must be a string"],
  ["an empty environment", { environment: "" }, "environment must not be empty"],
  [
    "a workflow file without its ref",
    { job_workflow_ref: ".github/workflows/deploy.yml" },
    "must be a file with its ref",
  ],
  [
    "a workflow file at any ref",
    { job_workflow_ref: "acme/shop/.github/workflows/deploy.yml@refs/heads/*" },
    "wildcards are not accepted",
  ],
  ["a list of events", { event_name: "push,schedule" }, "event_name must be the name of an event such as push"],
  ["no permissions", { permissions: [] }, "permissions must not be empty"],
  [
    "a permission on API keys",
    { permissions: ["keys:write"] },
    "permissions.0 must be one of projects:read, webhooks:read",
  ],
  [
    "the permission for secrets of webhooks",
    { permissions: ["webhook-secrets:write"] },
    "permissions.0 must be one of",
  ],
  ["a permission on the audit log", { permissions: ["audit:read"] }, "permissions.0 must be one of"],
  ["an issuer in upper case", { issuer: "GitHub" }, "issuer must be the name of an issuer"],
  ["the address of an issuer", { issuer: "https://gitlab.com" }, "issuer must be the name of an issuer"],
])("%s is rejected", (_title, changes, message) => {
  expect(() => parse(trustedWorkflowInput(), { ...input, ...changes })).toThrow(ApiError);
  expect(() => parse(trustedWorkflowInput(), { ...input, ...changes })).toThrow(message);
});

test.each(["ref", "environment", "job_workflow_ref", "event_name", "name", "issuer", "repository_id"])(
  "a %s of 60,000 characters is rejected in a few milliseconds",
  (field) => {
    for (const text of ["@", "a@", "a", "/", "refs/", "1", "_", " "]) {
      const hostile = { ...input, [field]: `[${text.repeat(60_000 / text.length)}[` };
      const before = process.threadCpuUsage();
      expect(() => parse(trustedWorkflowInput(), hostile)).toThrow(ApiError);
      expect(process.threadCpuUsage(before).user).toBeLessThan(100_000);
    }
  },
);
