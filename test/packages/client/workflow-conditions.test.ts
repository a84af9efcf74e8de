import { conditionsOf } from "../../../packages/client/src/workflow-conditions.ts";

const none = { ref: null, environment: null, job_workflow_ref: null, event_name: null, repository_owner_id: null };
const file = "acme/shop/.github/workflows/deploy.yml@refs/heads/main";

test.each([
  [{}, "any ref"],
  [{ ref: "refs/heads/main" }, "refs/heads/main"],
  [{ environment: "production" }, "environment production"],
  [{ job_workflow_ref: file }, `file ${file}`],
  [{ event_name: "push" }, "event push"],
  [{ repository_owner_id: "42" }, "owner 42"],
  [{ repository_owner_id: "42", event_name: "push", ref: "refs/heads/main" }, "refs/heads/main, event push, owner 42"],
])("a trusted workflow with the conditions %j shows each of them: %s", (conditions, shown) => {
  expect(conditionsOf({ ...none, ...conditions } as Parameters<typeof conditionsOf>[0])).toBe(shown);
});
