import type { EndpointRow } from "../../functions/foundation/manifest/endpoints.ts";
import { routeRows } from "../../functions/foundation/manifest/function-rows.ts";
import { dev, idOf, type Json, only, type Resource, SynthesizedStack } from "./synthesized.ts";

const every = new SynthesizedStack("everyOption");
const methods = dev.all("AWS::ApiGateway::Method");
const endpointMethods = methods.filter(({ Properties }) => Properties.HttpMethod !== "ANY");
const mocks = methods.filter(({ Properties }) => Properties.HttpMethod === "ANY");
const settingsOf = (stack: SynthesizedStack) => only(stack.all("AWS::ApiGateway::Stage")).Properties.MethodSettings;

test("each endpoint has one method and one Lambda, connected as in its row", () => {
  const routes = endpointMethods.map((method) => ({
    method: method.Properties.HttpMethod,
    path: pathOf(method),
    id: idOf(integratedFunction(method)),
  }));
  const rows = routeRows.map(({ method, path, id }) => ({ method, path, id }));
  for (const { Properties } of endpointMethods)
    expect(Properties.Integration).toMatchObject({ Type: "AWS_PROXY", IntegrationHttpMethod: "POST" });
  expect(routes.sort(byId)).toEqual(rows.sort(byId));
  expect(new Set(endpointMethods.map((method) => integratedFunction(method).id)).size).toBe(routeRows.length);
});

test.each<EndpointRow>(routeRows)(
  "$id has 512 MB, and the timeout of its row or 10 s",
  ({ id, timeoutSeconds = 10 }) => {
    const { MemorySize, Timeout } = dev.functionFor(id).Properties;
    expect({ MemorySize, Timeout }).toEqual({ MemorySize: 512, Timeout: timeoutSeconds });
  },
);

test("every route is behind the authorizer, except those for anyone", () => {
  const authorizer = only(dev.all("AWS::ApiGateway::Authorizer"));
  const open: string[] = [];
  for (const method of endpointMethods) {
    const { HttpMethod, AuthorizationType, AuthorizerId } = method.Properties;
    if (AuthorizationType === "NONE") open.push(`${HttpMethod} ${pathOf(method)}`);
    else
      expect({ AuthorizationType, AuthorizerId }).toEqual({
        AuthorizationType: "CUSTOM",
        AuthorizerId: { Ref: authorizer.id },
      });
  }
  expect(open).toEqual([
    "POST /v1/credentials/revoke",
    "POST /v1/sign-ins",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/http-message-signatures-directory",
  ]);
});

test("the authorizer runs for every request that has an Authorization header", () => {
  const { Properties } = only(dev.all("AWS::ApiGateway::Authorizer"));
  expect(Properties).toMatchObject({
    Type: "REQUEST",
    IdentitySource: "method.request.header.Authorization",
    // Explicit: if it is absent, API Gateway caches results for five minutes.
    AuthorizerResultTtlInSeconds: 0,
  });
  expect(JSON.stringify(Properties.AuthorizerUri)).toContain(dev.functionFor("auth-authorizer").id);
});

test("API Gateway invokes the endpoints with one role, which may invoke them and nothing else", () => {
  const roles = new Set(endpointMethods.map(({ Properties }) => dev.target(Properties.Integration.Credentials).id));
  const { AssumeRolePolicyDocument, Policies } = dev.target({ Ref: only([...roles]) }).Properties;
  expect(AssumeRolePolicyDocument.Statement).toEqual([
    { Effect: "Allow", Action: "sts:AssumeRole", Principal: { Service: "apigateway.amazonaws.com" } },
  ]);
  const { Resource, ...statement } = only<Json>(only<Json>(Policies).PolicyDocument.Statement);
  expect(statement).toEqual({ Effect: "Allow", Action: "lambda:InvokeFunction" });
  const files: string[] = routeRows.map(({ id }) => id);
  expect(Resource.map((arn: Json) => idOf(dev.target(arn))).sort()).toEqual(files.sort());
});

describe("a method that a path does not have", () => {
  test.each([...new Set(routeRows.map((row) => row.path))])("%s responds 405 with the methods it supports", (path) => {
    const mock = only(mocks.filter((candidate) => pathOf(candidate) === path));
    const response = only<Json>(mock.Properties.Integration.IntegrationResponses);
    expect(response.StatusCode).toBe("405");
    expect(response).not.toHaveProperty("SelectionPattern");
    const allowed = unquote(response.ResponseParameters["method.response.header.Allow"]).split(", ");
    expect(allowed.sort()).toEqual(
      routeRows
        .filter((row) => row.path === path)
        .map((row) => row.method)
        .sort(),
    );
    expect(response.ResponseParameters["method.response.header.x-request-id"]).toBe("context.requestId");
    const body = response.ResponseTemplates["application/json"].replaceAll("$context.requestId", "r-1");
    expect(JSON.parse(body)).toMatchObject({ error: { code: "method_not_allowed", request_id: "r-1" } });
  });

  test("gets its response without credentials and whatever the body is", () => {
    for (const { Properties } of mocks) {
      const status = Number(only<Json>(Properties.Integration.IntegrationResponses).StatusCode);
      expect(Properties.AuthorizationType).toBe("NONE");
      expect(Properties.Integration.Type).toBe("MOCK");
      // If a body were passed through, it would replace the template and the mock would fail with 500.
      expect(Properties.Integration.PassthroughBehavior).toBe("NEVER");
      for (const template of Object.values<string>(Properties.Integration.RequestTemplates)) {
        expect(JSON.parse(template)).toEqual({ statusCode: status });
      }
      expect(Object.keys(Properties.Integration.RequestTemplates).sort()).toEqual([
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
      ]);
    }
  });

  test("declares every header that its response has", () => {
    for (const { Properties } of mocks) {
      const sent = Object.keys(Properties.Integration.IntegrationResponses[0].ResponseParameters);
      const declared = Object.keys(Properties.MethodResponses[0].ResponseParameters);
      expect(declared.sort()).toEqual(sent.sort());
    }
  });
});

describe("a path without an endpoint", () => {
  const endpointPaths: string[] = routeRows.map((row) => row.path);
  const others = mocks.filter((mock) => !endpointPaths.includes(pathOf(mock)));

  test("is handled at every level of the route tree", () => {
    const levels = endpointPaths.flatMap((path) =>
      path.split("/").map((_, depth, parts) => parts.slice(0, depth).join("/") || "/"),
    );
    const expected = new Set([...levels.filter((path) => !endpointPaths.includes(path)), "/{proxy+}"]);
    expect([...expected]).toEqual(expect.arrayContaining(["/", "/v1"]));
    expect(others.map(pathOf).sort()).toEqual([...expected].sort());
  });

  test.each(others.map((mock) => [pathOf(mock), mock] as const))(
    "%s responds 404 in the error format of the API",
    (_, { Properties }) => {
      const response = only<Json>(Properties.Integration.IntegrationResponses);
      expect(response.StatusCode).toBe("404");
      const body = response.ResponseTemplates["application/json"].replaceAll("$context.requestId", "r-1");
      expect(JSON.parse(body)).toMatchObject({ error: { code: "not_found", request_id: "r-1" } });
    },
  );
});

const throttlesOf = (stack: SynthesizedStack): Record<string, string> =>
  Object.fromEntries(
    settingsOf(stack).map((setting: Json) => [
      `${setting.HttpMethod} ${setting.ResourcePath.replaceAll("~1", "/")}`,
      `${setting.ThrottlingRateLimit}/s, burst ${setting.ThrottlingBurstLimit}`,
    ]),
  );

test.each([
  ["dev", 50, 100],
  ["prod", 1_000, 2_000],
  ["everyOption", 5_000, 10_000],
  ["otherForms", 4, 15],
] as const)(
  "the throttle in %s is that of the stage, and that of an endpoint is never above it",
  (name, rate, burst) => {
    const own = routeRows.flatMap(({ method, path, throttle }) =>
      throttle
        ? [
            [
              `${method} /${path}`,
              `${Math.min(throttle.requestsPerSecond, rate)}/s, burst ${Math.min(throttle.burst, burst)}`,
            ],
          ]
        : [],
    );
    expect(own).toHaveLength(6);
    expect(throttlesOf(new SynthesizedStack(name))).toEqual({
      "* /*": `${rate}/s, burst ${burst}`,
      ...Object.fromEntries(own),
    });
  },
);

test("API Gateway writes no execution logs, which would contain headers and bodies", () => {
  for (const setting of settingsOf(every)) {
    expect(setting).not.toHaveProperty("LoggingLevel");
    expect(setting.DataTraceEnabled ?? false).toBe(false);
  }
});

test("the deployment is created after every method and gateway response", () => {
  const deployment = only(dev.all("AWS::ApiGateway::Deployment")) as Resource & { DependsOn: string[] };
  const parts = [...methods, ...dev.all("AWS::ApiGateway::GatewayResponse")].map(({ id }) => id);
  expect(deployment.DependsOn).toEqual(expect.arrayContaining(parts));
});

test("a change of the authorizer redeploys the API, which would otherwise call the old one", () => {
  const deploymentOf = (stack: SynthesizedStack) => only(stack.all("AWS::ApiGateway::Deployment")).id;
  expect(deploymentOf(new SynthesizedStack("devGradual"))).not.toBe(deploymentOf(dev));
});

test("the address of the API ends with the name of the stage, without a slash", () => {
  const parts = dev.outputs.ApiUrl.Value["Fn::Join"][1];
  const { Properties } = only(dev.all("AWS::ApiGateway::Stage"));
  expect([parts.at(-1), Properties.StageName]).toEqual(["/dev", "dev"]);
});

describe("CORS", () => {
  const oneOrigin = new SynthesizedStack("otherForms");
  const mocksOf = (stack: SynthesizedStack) =>
    stack.all("AWS::ApiGateway::Method").filter(({ Properties }) => Properties.HttpMethod === "ANY");

  /** Returns the response to a method: the one whose pattern matches the status that the template selects, or the first. */
  function responseTo(httpMethod: string, { Properties }: Resource): Json {
    const { RequestTemplates, IntegrationResponses } = Properties.Integration;
    const [, yes = "", no = ""] =
      /^#if\(\$context\.httpMethod == "OPTIONS"\) (.+) #else (.+) #end$/.exec(RequestTemplates["application/json"]) ??
      [];
    const { statusCode } = JSON.parse(httpMethod === "OPTIONS" ? yes : no);
    const [fallback, ...others] = IntegrationResponses;
    expect(fallback).not.toHaveProperty("SelectionPattern");
    return others.find(({ SelectionPattern }: Json) => SelectionPattern === String(statusCode)) ?? fallback;
  }

  test("is off unless the stage names origins", () => {
    expect(JSON.stringify(dev.template)).not.toMatch(/Access-Control|CORS_ORIGINS/);
  });

  test("every path responds to a preflight request, without credentials", () => {
    expect(mocksOf(oneOrigin)).toHaveLength(oneOrigin.all("AWS::ApiGateway::Resource").length + 1);
    for (const mock of mocksOf(oneOrigin)) {
      expect(mock.Properties.AuthorizationType).toBe("NONE");
      const { StatusCode, ResponseParameters, ResponseTemplates } = responseTo("OPTIONS", mock);
      expect({ StatusCode, ResponseTemplates }).toEqual({
        StatusCode: "204",
        ResponseTemplates: { "application/json": "" },
      });
      expect(ResponseParameters).toEqual({
        "method.response.header.Access-Control-Allow-Origin": "'https://app.example.com'",
        "method.response.header.Access-Control-Allow-Methods": "'GET,POST,PATCH,DELETE'",
        "method.response.header.Access-Control-Allow-Headers":
          "'Authorization,Content-Type,Idempotency-Key,MCP-Protocol-Version,Mcp-Method,Mcp-Name,traceparent,baggage,sentry-trace'",
        "method.response.header.Access-Control-Max-Age": "'7200'",
        "method.response.header.Vary": "'Origin'",
      });
      const declared = only<Json>(mock.Properties.MethodResponses.filter((each: Json) => each.StatusCode === "204"));
      expect(Object.keys(declared.ResponseParameters).sort()).toEqual(Object.keys(ResponseParameters).sort());
    }
  });

  test("a preflight request gets its own origin if the stage allows several, and otherwise the first one", () => {
    for (const mock of mocksOf(every)) {
      const { ResponseParameters, ResponseTemplates } = responseTo("OPTIONS", mock);
      expect(ResponseParameters["method.response.header.Access-Control-Allow-Origin"]).toBe(
        "'https://app.example.com'",
      );
      const template: string = ResponseTemplates["application/json"];
      // Browsers send the name in lower case over HTTP/2.
      for (const name of ["Origin", "origin"]) expect(template).toContain(`$input.params().header.get("${name}")`);
      const [, condition = "", then = ""] = /\n#if\((\$origin == "http[^)]+)\)\n(.+)\n#end$/.exec(template) ?? [];
      expect(condition.split(" || ")).toEqual(['$origin == "http://localhost:5173"']);
      expect(then).toBe("#set($context.responseOverride.header.Access-Control-Allow-Origin = $origin)");
    }
  });

  test("other methods that a path does not have get the same response as without CORS", () => {
    const statusesOf = (stack: SynthesizedStack, statusOf: (mock: Resource) => string) =>
      Object.fromEntries(mocksOf(stack).map((mock) => [mock.id, statusOf(mock)]));
    expect(statusesOf(oneOrigin, (mock) => responseTo("PUT", mock).StatusCode)).toEqual(
      statusesOf(dev, ({ Properties }) => Properties.Integration.IntegrationResponses[0].StatusCode),
    );
  });

  test.each([
    ["the origin, if the stage allows one", oneOrigin, "'https://app.example.com'"],
    ["any origin, if the stage allows several", every, "'*'"],
  ])("errors of API Gateway allow %s", (_, stack, origin) => {
    const responses = stack.all("AWS::ApiGateway::GatewayResponse");
    expect(responses.length).toBeGreaterThan(10);
    for (const { Properties } of responses) {
      expect(Properties.ResponseParameters).toMatchObject({
        "gatewayresponse.header.Access-Control-Allow-Origin": origin,
        "gatewayresponse.header.Access-Control-Expose-Headers": "'x-request-id, Link, Retry-After, WWW-Authenticate'",
      });
    }
    for (const mock of mocksOf(stack)) {
      const { ResponseParameters } = responseTo("PUT", mock);
      expect(ResponseParameters["method.response.header.Access-Control-Allow-Origin"]).toBe(origin);
    }
  });

  test("every endpoint gets the origins, and no other function does", () => {
    const origins = "https://app.example.com,http://localhost:5173";
    for (const { id } of routeRows) {
      expect(every.functionFor(id).Properties.Environment.Variables.CORS_ORIGINS).toBe(origins);
    }
    expect(every.functionFor("attempts-send").Properties.Environment.Variables).not.toHaveProperty("CORS_ORIGINS");
  });
});

function pathOf({ Properties }: Resource): string {
  const parts: string[] = [];
  for (let reference = Properties.ResourceId; reference.Ref !== undefined; ) {
    const resource = dev.target(reference).Properties;
    parts.unshift(resource.PathPart);
    reference = resource.ParentId;
  }
  return `/${parts.join("/")}`;
}

function integratedFunction({ Properties }: Resource): Resource {
  const parts: Json[] = Properties.Integration.Uri["Fn::Join"][1];
  return dev.target(only(parts.filter((part) => part["Fn::GetAtt"])));
}

function unquote(expression: string): string {
  expect(expression).toMatch(/^'[^']*'$/);
  return expression.slice(1, -1);
}

function byId(one: { id: string }, other: { id: string }): number {
  return one.id.localeCompare(other.id);
}
