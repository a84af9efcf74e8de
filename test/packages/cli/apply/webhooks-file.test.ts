import { parseWebhooksFile } from "../../../../packages/cli/src/apply/webhooks-file.ts";

const url = "https://example.com/hook";

test("YAML and JSON give the same webhooks", () => {
  const file = { project: "shop", webhooks: [{ url, events: ["deploy.failed"], enabled: false }] };
  const yaml = `# the shop\nproject: shop\nwebhooks:\n  - url: ${url}\n    events: [deploy.failed]\n    enabled: false\n`;
  expect(parseWebhooksFile(yaml)).toEqual(file);
  expect(parseWebhooksFile(JSON.stringify(file))).toEqual(file);
  expect(parseWebhooksFile("webhooks: []")).toEqual({ webhooks: [] });
});

test("a webhook may have a filter, and null removes it", () => {
  const { webhooks } = parseWebhooksFile(
    `webhooks:\n- {url: ${url}, events: [deploy.failed], filter: {branch: [main, release/*]}}\n- {url: "${url}2", events: [deploy.failed], filter: null}`,
  );
  expect(webhooks.map(({ filter }) => filter)).toEqual([{ branch: ["main", "release/*"] }, null]);
});

test("a name has 1 to 100 characters", () => {
  const read = (name: string) =>
    parseWebhooksFile(JSON.stringify({ webhooks: [{ url, name, events: ["deploy.failed"] }] }));
  for (const name of ["A", "x".repeat(100)]) expect(read(name).webhooks).toMatchObject([{ name }]);
  for (const name of ["", "x".repeat(101)]) expect(() => read(name)).toThrow("webhooks.0.name: ");
});

test("anchors can share events between webhooks", () => {
  const { webhooks } = parseWebhooksFile(
    `webhooks:\n- {url: ${url}, events: &failures [deploy.failed]}\n- {url: "${url}2", events: *failures}`,
  );
  expect(webhooks.map(({ events }) => events)).toEqual([["deploy.failed"], ["deploy.failed"]]);
});

const withHeaders = (headers: string) =>
  `webhooks: [{url: "https://example.com/hook", events: ["deploy.*"], headers: ${headers}}]`;
const withEvents = (events: string) => `webhooks: [{url: "${url}", events: ${events}}]`;

test.each([
  ["nothing", "", "the file: "],
  ["webhooks that are null", "webhooks:", "webhooks: "],
  ["a field that is not known", "webhooks: []\nwebhook: []", "the file: has no field webhook"],
  ["a misspelled field of a webhook", `webhooks: [{url: "${url}", evnts: []}]`, "webhooks.0: has no field evnts"],
  ["a secret", `webhooks: [{url: "${url}", events: [deploy.failed], secret: x}]`, "has no field secret"],
  ["no URL", "webhooks: [{events: [deploy.failed]}]", "webhooks.0.url: must be a text"],
  ["no webhooks", "project: shop", "webhooks: must be a list"],
  ["a list", "[]", "the file: must be a map of fields"],
  ["a relative URL", "webhooks: [{url: /hook, events: [deploy.failed]}]", "webhooks.0.url: must be an absolute URL"],
  ["an event in upper case", withEvents("[Deploy.Paused]"), "webhooks.0.events.0: must be one of deploy.started, "],
  [
    "the value of a header",
    withHeaders("{Authorization: Bearer abc}"),
    "webhooks.0.headers.Authorization: must be {env: NAME} or {file: path}",
  ],
  ["headers without one", withHeaders("{}"), "webhooks.0.headers: must have a header, or be null"],
  ["a password in a URL", `webhooks: [{url: "https://:p@example.com/", events: ["*"]}]`, "must have no user name and"],
  ["a user name in a URL", `webhooks: [{url: "https://u@example.com/", events: ["*"]}]`, "must have no user name and"],
  ["a header with two places", withHeaders("{A: {env: X, file: y}}"), "webhooks.0.headers.A: must be {env: NAME}"],
  ["an unknown format", withHeaders("null, format: mattermost"), "webhooks.0.format: must be one of standard, slack"],
  ["a settle_seconds of a minute and more", withHeaders("null, settle_seconds: 61"), "webhooks.0.settle_seconds: "],
  ["no events", withEvents("[]"), "webhooks.0.events: must name at least one event"],
  [
    "a text for the values of a filter",
    `webhooks: [{url: "${url}", events: [deploy.failed], filter: {branch: main}}]`,
    "webhooks.0.filter.branch: must be a list",
  ],
  ["a text for events", withEvents("deploy.failed"), "webhooks.0.events: must be a list"],
  [
    "a text for enabled",
    `webhooks: [{url: "${url}", events: [deploy.failed], enabled: "no"}]`,
    "must be true or false",
  ],
  [
    "a URL twice",
    `webhooks: [{url: "${url}", events: [deploy.failed]}, {url: "HTTPS://EXAMPLE.com/hook", events: [deploy.failed]}]`,
    "twice",
  ],
  ["a key twice", "webhooks: []\nwebhooks: []", "not valid YAML: Map keys must be unique at line 2, column 1."],
  ["text that is not YAML", "webhooks: [", "not valid YAML: "],
  ["two documents", "webhooks: []\n---\nwebhooks: []", "not valid YAML: "],
  [
    "aliases that grow without bound",
    `a: &a [x,x,x,x,x,x,x,x,x,x]\n${["b", "c", "d", "e", "f"].map((name, index) => `${name}: &${name} [${Array(10).fill(`*${"abcdef"[index]}`).join(",")}]`).join("\n")}`,
    "not valid YAML: ",
  ],
])("a file with %s is a usage error that names the place", (_, text, message) => {
  expect(() => parseWebhooksFile(text)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining(message) }),
  );
});

test("an error of the YAML parser does not quote the file", () => {
  expect(() => parseWebhooksFile("password: hunter2: x\nwebhooks: [")).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining("hunter2") }),
  );
});
