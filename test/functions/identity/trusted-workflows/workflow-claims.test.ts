import { workflowFromClaims } from "../../../../functions/identity/trusted-workflows/workflow-claims.ts";

/** The claims of the example in https://docs.github.com/en/actions/reference/security/oidc that are used. */
const github = {
  repository_id: "74",
  repository_owner_id: "65",
  ref: "refs/heads/main",
  environment: "prod",
  job_workflow_ref: "octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main",
  event_name: "workflow_dispatch",
  repository: "octo-org/octo-repo",
  run_id: "1234567",
};

const workflow = {
  repositoryId: "74",
  ownerId: "65",
  ref: "refs/heads/main",
  environment: "prod",
  workflowFile: "octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main",
  event: "workflow_dispatch",
  repository: "octo-org/octo-repo",
  runId: "1234567",
};

test("the claims of GitHub are read by their names", () => {
  expect(workflowFromClaims({ ...github, project_id: "1", ref_path: "refs/heads/other" }, "github")).toEqual(workflow);
});

test("the claims of GitLab are read by their names, with the full ref", () => {
  const claims = {
    project_id: "74",
    namespace_id: "65",
    ref: "main",
    ref_type: "branch",
    ref_path: "refs/heads/main",
    environment: "prod",
    ci_config_ref_uri: "gitlab.example.com/octo-org/octo-repo//.gitlab-ci.yml@refs/heads/main",
    pipeline_source: "push",
    project_path: "octo-org/octo-repo",
    pipeline_id: "1234567",
  };
  expect(workflowFromClaims({ ...claims, repository_id: "1" }, "gitlab")).toEqual({
    ...workflow,
    workflowFile: "gitlab.example.com/octo-org/octo-repo//.gitlab-ci.yml@refs/heads/main",
    event: "push",
  });
});

test("ids are accepted as numbers, as far as a number is exact", () => {
  expect(workflowFromClaims({ ...github, repository_id: 74, run_id: 1234567 }, "github")).toEqual(workflow);
  expect(workflowFromClaims({ ...github, repository_id: 2 ** 53 }, "github")).toBeUndefined();
});

const hostile: [string, unknown][] = [
  ["absent", undefined],
  ["null", null],
  ["empty", ""],
  ["an array with the right value", ["74"]],
  ["an object", { toString: "74" }],
  ["a boolean", true],
  ["a fraction", 7.4],
  ["a negative number", -74],
  ["infinite", Number.POSITIVE_INFINITY],
  ["with a space", " 74"],
  ["with a leading zero", "074"],
  ["with a line break", "74\n"],
  ["hexadecimal", "0x4a"],
  ["of other digits", "७४"],
  ["of 21 digits", "1".repeat(21)],
  ["of 10 KB", "7".repeat(10_240)],
];

test.each(hostile)("a repository id that is %s gives no workflow", (_title, repository_id) => {
  expect(workflowFromClaims({ ...github, repository_id }, "github")).toBeUndefined();
});

test.each(["repository_id", "project_id"])("a claim %s that is only inherited does not count", (name) => {
  const claims = Object.create({ [name]: "74" });
  for (const style of ["github", "gitlab"] as const) expect(workflowFromClaims(claims, style)).toBeUndefined();
});

test.each<[string, unknown]>([
  ["an array", ["refs/heads/main"]],
  ["an object", {}],
  ["too long", `refs/heads/${"x".repeat(10_240)}`],
  ["with a control character", "refs/heads/main\u0000"],
  ["with a line break", "refs/heads/main\n"],
  ["with a reversed direction", "refs/heads/\u202eniam"],
  ["with half of a character", "refs/heads/\ud800"],
  ["empty", ""],
])("a ref or environment that is %s counts as absent", (_title, value) => {
  const read = workflowFromClaims({ ...github, ref: value, environment: value, repository: value }, "github");
  expect(read).toEqual({ ...workflow, ref: undefined, environment: undefined, repository: undefined });
});

test.each([null, undefined, "text", 7, [], [github]])("claims that are %j give no workflow", (claims) => {
  expect(workflowFromClaims(claims, "github")).toBeUndefined();
});
