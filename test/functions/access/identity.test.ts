import { identityContext } from "../../../functions/access/identity.ts";

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
