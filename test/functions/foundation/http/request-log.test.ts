import { randomUUID } from "node:crypto";
import { endpointRows } from "../../../../functions/foundation/manifest/function-rows.ts";
import { handler as provision } from "../../../../functions/identity/api-keys/provision.ts";
import { interceptDynamo, interceptSqs } from "../../../support/aws-calls.ts";
import { type LoggedLine, watchLog } from "../../../support/metrics.ts";
import { newScenario, type Scenario } from "../../../support/scenario.ts";
import { type Response, send, useService } from "../../../support/service.ts";
import { EXAMPLE_CODE, givenSignIn } from "../../../support/sign-ins.ts";
import { successStatusOf, validBodyOf } from "../../../support/valid-bodies.ts";

/* The log lines of requests: one line for each successful write, and the request id in every line. */

const service = useService();
let scenario: Scenario;
let lines: LoggedLine[];
beforeAll(async () => {
  scenario = await newScenario(service);
});
beforeEach(() => {
  lines = watchLog();
});

/** Returns the request id in the response, and checks that header and body agree. */
const idOf = ({ headers, body }: Response): string | null => {
  const id = headers.get("x-request-id");
  if (body?.error) expect(body.error.request_id).toBe(id);
  return id;
};

const writeRows = endpointRows.filter(({ method }) => method !== "GET");

test.each(writeRows)("a successful $method $path logs one line with its ids", async (row) => {
  const {
    token,
    key,
    path,
    projectId: project_id,
    webhook,
  } = await newScenario(service, { events: ["deploy.failed"] });
  const ids: Record<string, string> = { project_id, webhook_id: webhook.id };
  if (row.path.includes("{delivery_id}")) ids.delivery_id = (await (await key()).post(`${path}/test`, {})).body.data.id;
  if (row.path.includes("{trusted_workflow_id}")) {
    const trust = { issuer: "github", repository_id: "1296269", permissions: ["webhooks:read"] };
    const { body } = await service.as(token).post(`/v1/projects/${project_id}/trusted-workflows`, trust);
    ids.trusted_workflow_id = body.data.id;
  }
  if (row.path.includes("{id}")) ids.id = (await service.as(token).post("/v1/api-keys", { name: "x" })).body.data.id;
  const ofAccount = row.path.includes("{service_account_id}");
  if (ofAccount) {
    const session = service.as(token);
    const accounts = `/v1/projects/${project_id}/service-accounts`;
    ids.service_account_id = (await session.post(accounts, { name: "x", role: "viewer" })).body.data.id;
    const keys = `${accounts}/${ids.service_account_id}/api-keys`;
    if (row.path.includes("{id}")) ids.id = (await session.post(keys, { name: "x" })).body.data.id;
  }
  const own = Object.fromEntries(
    [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => {
      const id = ids[name];
      if (id === undefined) throw new Error(`Add an id for {${name}} to this test.`);
      return [name, id];
    }),
  );
  const body = validBodyOf(row);
  await givenSignIn(EXAMPLE_CODE);
  lines = watchLog();
  const response = await send(
    service.baseUrl + row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => own[name] ?? ""),
    {
      method: row.method,
      headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
      ...(body && { body }),
    },
  );
  expect(lines).toEqual([
    {
      level: "info",
      message: "request",
      request_id: idOf(response),
      method: row.method,
      route: row.path,
      status: successStatusOf(row),
      ...(row.access !== "anyone" && { user_id: expect.stringMatching(/^user-/) }),
      ...own,
      ...(response.status === 201 && { created_id: response.body.data.id }),
    },
  ]);
});

test("a write by an API key is logged with its id and without private text, and a read is not logged", async () => {
  const { key } = (await scenario.api.post("/v1/api-keys", { name: "private-text" })).body.data;
  await service.as(key).patch(scenario.path, { url: "https://example.com/?private-text" });
  await service.as(key).get(scenario.path);
  const key_id = expect.stringMatching(/^[0-9a-f-]{36}$/);
  expect(lines).toMatchObject([{ method: "POST" }, { method: "PATCH", key_id }]);
  expect(JSON.stringify(lines)).not.toContain("private-text");
});

test("a rejected write logs nothing", async () => {
  await scenario.viewer.delete(scenario.path);
  await scenario.api.post("/v1/api-keys", { name: "" });
  await scenario.api.delete(`/v1/api-keys/${randomUUID()}`);
  expect(lines).toEqual([]);
});

test("the line of a rejected credential has the request id of the response", async () => {
  const response = await service.as("nonsense").get("/v1/projects");
  expect(lines).toMatchObject([{ message: "credential rejected", request_id: idOf(response) }]);
});

test("the line of an internal error has the request id of the response", async () => {
  interceptDynamo(async ({ command }, send) => {
    if (command === "QueryCommand") throw new TypeError("a bug");
    return send();
  });
  const response = await scenario.api.get("/v1/projects");
  expect(response.status).toBe(500);
  expect(lines).toMatchObject([{ level: "error", message: "request failed", request_id: idOf(response) }]);
});

test("the line of an error that the response does not report has the request id too", async () => {
  interceptSqs(() => Promise.reject(new Error("SQS is down")));
  const response = await scenario.api.post(`${scenario.path}/test`, {});
  expect(response.status).toBe(202);
  expect(lines).toMatchObject([
    { level: "error", request_id: idOf(response), delivery_ids: `work:${scenario.webhook.id}` },
    { message: "request", request_id: idOf(response), webhook_id: scenario.webhook.id },
  ]);
});

test("concurrent requests are logged with their own request ids", async () => {
  const responses = await Promise.all(Array.from({ length: 8 }, () => service.as("nonsense").get("/v1/projects")));
  expect(lines.map(({ request_id }) => request_id).sort()).toEqual(responses.map(idOf).sort());
});

test("a provisioned key logs one line", async () => {
  const { userId } = service.user();
  const { id } = await provision({ user_id: userId, name: "private-text" });
  expect(lines).toEqual([{ level: "info", message: "api key provisioned", user_id: userId, key_id: id }]);
});
