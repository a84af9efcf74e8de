import { settings } from "../../../../functions/foundation/platform/env.ts";

/* In a file of its own: the module keeps the copy. */

test("on Lambda, the environment is copied at the first read", () => {
  Object.assign(process.env, { AWS_LAMBDA_FUNCTION_NAME: "authorizer", STAGE: "prod", JWT_ISSUER: "" });
  expect(settings.stage()).toBe("prod");
  process.env.STAGE = "dev";
  process.env.JWT_ISSUER = "https://idp.example.com";
  expect(settings.stage()).toBe("prod");
  expect(settings.jwtIssuer()).toBeUndefined();
});
