import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jest } from "@jest/globals";
import { projectId, webhook } from "../../../support/api-samples.ts";
import { svcHere } from "../../../support/svc-here.ts";

/* Headers that a file of webhooks declares: where their values are, and when they are sent. */

const path = join(tmpdir(), `webhooks-${process.pid}.yml`);
const declared = `
project: ${projectId}
webhooks:
  - url: ${webhook.url}
    events: [deploy.failed]
    format: github-dispatch
    delivery: latest
    headers: {Authorization: {env: HOOK_TOKEN}}
`;
const stored = { ...webhook, format: "github-dispatch", delivery: "latest", header_names: ["Authorization"] };

/** @returns the bodies that were sent, and what was printed */
async function apply(existing: object[], args: string[], HOOK_TOKEN = "Bearer value-of-it") {
  writeFileSync(path, declared);
  const sent: unknown[] = [];
  const spy = jest.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    if (request.method === "GET") return Response.json({ data: existing });
    sent.push(await request.json());
    return Response.json({ data: { ...stored, secret: "whsec_1234" } });
  });
  process.env.HOOK_TOKEN = HOOK_TOKEN;
  const env = { SVC_BASE_URL: "https://api.test", SVC_API_KEY: `svc_${"0".repeat(64)}` };
  const { code, stdout, stderr } = await svcHere(["apply", "-f", path, ...args], { env, showsSecret: true });
  delete process.env.HOOK_TOKEN;
  spy.mockRestore();
  expect(stdout + stderr).not.toContain("value-of-it");
  return { sent, code, text: stdout + stderr };
}

const headers = { Authorization: "Bearer value-of-it" };

test("a new webhook gets its values, and the plan has the names", async () => {
  const { sent, text } = await apply([], []);
  expect(sent).toEqual([
    { url: webhook.url, events: ["deploy.failed"], format: "github-dispatch", delivery: "latest", headers },
  ]);
  expect(text).toContain("+   headers: Authorization (values are sent)\n");
  expect(text).not.toContain("cannot be compared");
});

test("the plan says that values are not compared, if it sends none", async () => {
  const uncompared = "The values of headers cannot be compared: --headers sends them again.\n";
  expect((await apply([stored], [])).text).toContain(uncompared);
  expect((await apply([{ ...stored, events: ["deploy.started"] }], [])).text).toContain(uncompared);
  const { text } = await apply([stored], ["--headers"]);
  expect(text).toContain("-   headers: Authorization\n+   headers: Authorization (values are sent)\n");
  expect(text).not.toContain("cannot be compared");
  expect((await apply([{ ...stored, url: "https://other.example.com/" }], [])).text).not.toContain(
    "cannot be compared",
  );
});

test.each<[string, object, string[], unknown[]]>([
  ["nothing changes", stored, [], []],
  ["--headers asks for it", stored, ["--headers"], [{ headers }]],
  ["the webhook has others", { ...stored, header_names: ["X-Key"] }, [], [{ headers }]],
  ["it has none, and another format", { ...webhook, delivery: "latest" }, [], [{ format: "github-dispatch", headers }]],
])("values are sent if names change, or on request: %s", async (_, existing, args, expected) => {
  expect((await apply([existing], args)).sent).toEqual(expected);
});

test("a variable without a value stops before the first change, and a dry run needs none", async () => {
  const { sent, code, text } = await apply([], [], "");
  expect({ sent, code }).toEqual({ sent: [], code: 2 });
  expect(text).toContain("The variable HOOK_TOKEN has no value for the header Authorization. Nothing was changed.");
  expect((await apply([], ["--dry-run"], "")).code).toBe(0);
});
