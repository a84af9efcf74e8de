import {
  type Identity,
  idempotencyScopeOf,
  identityContext,
  toContext,
} from "../../../../functions/foundation/access/identity.ts";
import { requireAccess } from "../../../../functions/foundation/access/require-access.ts";

/*
 * During a gradual deployment, endpoints of one release get the contexts of authorizers of two. The fields of the first
 * release are all that an endpoint may require.
 */

const ofFirstRelease = { userId: "user-1", authType: "jwt" };

test("the context of an earlier authorizer is accepted, so every field that was added later is optional", () => {
  expect(identityContext.parse(ofFirstRelease)).toEqual(ofFirstRelease);
});

test("a field that only a newer authorizer writes is ignored", () => {
  expect(identityContext.parse({ ...ofFirstRelease, ofTheNextRelease: "1" })).toEqual(ofFirstRelease);
});

test("the lists of a limited caller arrive as they were passed, also an empty one", () => {
  const caller: Identity = { userId: "workflow:1", authType: "workflow", permissions: [], projectIds: ["p1", "p2"] };
  expect(identityContext.parse(toContext(caller))).toEqual(caller);
});

test.each([
  ["session", "none", "session_required"],
  ["user", "projects:read", "insufficient_permission"],
  ["viewer", "none", "not_found"],
] as const)(
  "a kind of caller that only a newer authorizer knows gets a 4xx where the access is %s",
  async (access, permission, code) => {
    const caller: Identity = identityContext.parse({ ...ofFirstRelease, authType: "ofTheNextRelease" });
    const response = requireAccess({ access, permission }, caller, { project_id: "p1" });
    await expect(response).rejects.toMatchObject({ code });
  },
);

test.each<[string, Partial<Identity>, string]>([
  ["a key without limits is its user", {}, "user-1"],
  ["a key with permissions is the key", { permissions: ["webhooks:write"] }, "user-1\nkey-1"],
  ["a key with projects is the key", { projectIds: ["p1"] }, "user-1\nkey-1"],
  [
    "a workflow is its repository in the project",
    { repositoryId: "issuer#1", projectIds: ["p1"] },
    "workflow:issuer#1#p1",
  ],
])("the scope of the idempotency keys of %s", (_, limits, scope) => {
  expect(idempotencyScopeOf({ userId: "user-1", authType: "api_key", keyId: "key-1", ...limits }, "p1")).toBe(scope);
});
