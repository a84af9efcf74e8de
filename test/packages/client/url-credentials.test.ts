import { credentialsIn } from "../../../packages/client/src/url-credentials.ts";

test.each([
  ["a user name and a password", "https://ann:word@hooks.example/x?y=1", "ann:word"],
  ["a user name alone", "https://ann@hooks.example/x?y=1", "ann:"],
  ["a password alone", "https://:word@hooks.example/x?y=1", ":word"],
  ["characters that a URL encodes", " https://an%3An:p%40ss@hooks.example/x?y=1 ", "an:n:p@ss"],
  ["a % that encodes nothing", "https://ann:100%@hooks.example/x?y=1", "ann:100%"],
  ["characters beyond Latin-1", "https://zoë:пароль🚀@hooks.example/x?y=1", "zoë:пароль🚀"],
])("a URL with %s is returned without it, beside the header that has it", (_, url, pair) => {
  const authorization = `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
  expect(credentialsIn(url)).toEqual({ url: "https://hooks.example/x?y=1", authorization });
});

test.each(["https://hooks.example/x", "https://@hooks.example/x", "https://", "ann:word@hooks.example", ""])(
  "%j has no credentials",
  (text) => expect(credentialsIn(text)).toBeUndefined(),
);
