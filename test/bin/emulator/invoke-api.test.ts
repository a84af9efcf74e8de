import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { createInvokeApi } from "../../../bin/emulator/invoke-api.ts";
import { type LambdaHandler, LambdaTimeout } from "../../../bin/emulator/lambda.ts";
import { listening } from "../../support/listening.ts";
import { useService } from "../../support/service.ts";

const service = useService();

async function invoke(baseUrl: string, name: string, payload?: unknown, headers: Record<string, string> = {}) {
  // Unlike `fetch`, this sends only the given headers, as an AWS SDK does.
  const url = `${baseUrl}/2015-03-31/functions/${name}/invocations`;
  const request = http.request(url, { method: "POST", headers, agent: false });
  request.end(typeof payload === "string" ? payload : JSON.stringify(payload));
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(text) };
}

test("invokes the functions that the platform invokes under IAM, on the address of the API", async () => {
  const { userId, api } = service.user();
  const member = { user_id: userId, project_id: randomUUID(), name: "shop", role: "viewer" };
  expect(await invoke(service.baseUrl, "projects-upsert-member", member)).toMatchObject({
    status: 200,
    headers: { "content-type": "application/json" },
    body: { id: member.project_id, name: "shop", role: "viewer" },
  });
  expect((await api.get("/v1/projects")).body.data).toMatchObject([{ id: member.project_id, role: "viewer" }]);
  const { body } = await invoke(service.baseUrl, "api-keys-provision", { user_id: userId, name: "partner" });
  expect((await service.as(body.key).get("/v1/projects")).status).toBe(200);
  const revoked = await invoke(service.baseUrl, "api-keys-revoke-all", { user_id: userId });
  expect(revoked).toMatchObject({ status: 200, body: { revoked: 1 } });
  expect(revoked.headers).not.toHaveProperty("x-amz-function-error");
});

test("returns an error of the function as Lambda does: 200, with X-Amz-Function-Error", async () => {
  const { status, headers, body } = await invoke(service.baseUrl, "api-keys-provision", { name: "nobody" });
  expect([status, headers["x-amz-function-error"]]).toEqual([200, "Unhandled"]);
  expect(body).toEqual({ errorType: "ApiError", errorMessage: "The input is not valid: user_id is required." });
});

test.each([
  ["that does not exist", "api-keys-provide"],
  ["that consumes a queue", "deliveries-fan-out"],
  ["of an endpoint", "api-keys-create"],
  ["with the path of its file", "api-keys%2Fprovision"],
  ["with the name of a property", "constructor"],
])("returns 404 for a function %s, with the names of those it has", async (_title, name) => {
  expect(await invoke(service.baseUrl, name, {})).toMatchObject({
    status: 404,
    headers: { "x-amzn-errortype": "ResourceNotFoundException" },
    body: {
      Type: "User",
      Message: expect.stringContaining("api-keys-provision, api-keys-import, api-keys-revoke-all"),
    },
  });
});

test.each([
  ["not JSON", "{", {}, 400, "InvalidRequestContentException"],
  ["of more than 6 MB", "1".repeat(6 * 1024 * 1024 + 1), {}, 413, "RequestTooLargeException"],
  ["to be queued", "{}", { "X-Amz-Invocation-Type": "Event" }, 400, "InvalidParameterValueException"],
])("rejects a payload that is %s", async (_title, payload, headers, status, type) => {
  expect(await invoke(service.baseUrl, "api-keys-provision", payload, headers)).toMatchObject({
    status,
    headers: { "x-amzn-errortype": type },
  });
});

test.each([
  ["Origin", "https://attacker.example"],
  ["Origin", "null"],
  ["Sec-Fetch-Site", "same-origin"],
  ["Host", "attacker.example"],
  ["Host", "127.0.0.1.attacker.example:3000"],
  ["Host", "localhost.attacker.example"],
])("rejects a request of a web page, with %s: %s, and changes nothing", async (name, value) => {
  const { userId, api } = service.user();
  const member = { user_id: userId, project_id: randomUUID(), name: "shop" };
  expect(await invoke(service.baseUrl, "projects-upsert-member", member, { [name]: value })).toMatchObject({
    status: 403,
    headers: { "x-amzn-errortype": "AccessDeniedException" },
  });
  expect((await api.get("/v1/projects")).body.data).toEqual([]);
});

test("a request with another method or path is one to the API", async () => {
  const path = "/2015-03-31/functions/api-keys-provision/invocations";
  const { api } = service.user();
  expect((await api.get(path)).body.error.code).toBe("not_found");
  expect((await api.post(`${path}/more`, {})).body.error.code).toBe("not_found");
});

describe("a function", () => {
  let handle: LambdaHandler;
  let baseUrl: string;
  beforeAll(async () => {
    const serve = await createInvokeApi(async () => (event, context) => handle(event, context));
    baseUrl = await listening(http.createServer(serve));
  });

  test("has the timeout of its row, and a timeout is an error of the function", async () => {
    let secondsLeft = 0;
    handle = async (_, context) => {
      secondsLeft = Math.ceil(context.getRemainingTimeInMillis() / 1000);
      throw new LambdaTimeout("took too long");
    };
    expect(await invoke(baseUrl, "projects-suspend", {})).toMatchObject({
      status: 200,
      headers: { "x-amz-function-error": "Unhandled" },
      body: { errorType: "Sandbox.Timedout", errorMessage: "took too long" },
    });
    expect(secondsLeft).toBe(30);
  });

  test("gets an empty object without a payload, and may return nothing", async () => {
    let received: unknown;
    handle = async (event) => {
      received = event;
    };
    expect(await invoke(baseUrl, "projects-suspend")).toMatchObject({ status: 200, body: null });
    expect(received).toEqual({});
  });
});
