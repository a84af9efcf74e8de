import { endpoints } from "../../functions/manifest/endpoints.ts";
import { dev, fileOf, type Json, only, type Resource } from "./synthesised.ts";

const methods = dev.all("AWS::ApiGateway::Method");
const endpointMethods = methods.filter(({ Properties }) => Properties.HttpMethod !== "ANY");
const mocks = methods.filter(({ Properties }) => Properties.HttpMethod === "ANY");

test("there is one method and one Lambda per endpoint, connected as its row says", () => {
  const routes = endpointMethods.map((method) => ({
    method: method.Properties.HttpMethod,
    path: pathOf(method),
    file: fileOf(integratedFunction(method)),
  }));
  const rows = endpoints.map(({ method, path, file }) => ({ method, path, file }));
  expect(routes.sort(byFile)).toEqual(rows.sort(byFile));
  expect(new Set(endpointMethods.map((method) => integratedFunction(method).id)).size).toBe(endpoints.length);
});

test("API Gateway hands requests to the Lambdas as they came", () => {
  for (const { Properties } of endpointMethods) {
    expect(Properties.Integration).toMatchObject({ Type: "AWS_PROXY", IntegrationHttpMethod: "POST" });
  }
});

test("every endpoint is behind the authorizer", () => {
  const authorizer = only(dev.all("AWS::ApiGateway::Authorizer"));
  for (const { Properties } of endpointMethods) {
    expect(Properties).toMatchObject({ AuthorizationType: "CUSTOM", AuthorizerId: { Ref: authorizer.id } });
  }
});

test("the authorizer is asked on every request, unless there is no Authorization header", () => {
  const { Properties } = only(dev.all("AWS::ApiGateway::Authorizer"));
  expect(Properties).toMatchObject({
    Type: "REQUEST",
    IdentitySource: "method.request.header.Authorization",
    // Explicit: when it is absent, answers are cached for five minutes.
    AuthorizerResultTtlInSeconds: 0,
  });
  expect(JSON.stringify(Properties.AuthorizerUri)).toContain(dev.functionFor("auth/authorizer").id);
});

test("API Gateway may invoke each endpoint by its own route only", () => {
  for (const { file, method, path } of endpoints) {
    const { id } = dev.functionFor(file);
    const permissions = dev
      .all("AWS::Lambda::Permission")
      .filter(({ Properties }) => Properties.FunctionName["Fn::GetAtt"][0] === id);
    const { Principal, SourceArn } = only(permissions).Properties;
    expect(Principal).toBe("apigateway.amazonaws.com");
    expect(SourceArn["Fn::Join"][1].at(-1)).toBe(`/${method}${path.replaceAll(/\{\w+\}/g, "*")}`);
  }
});

describe("a method that a path does not have", () => {
  test.each([...new Set(endpoints.map((row) => row.path))])("%s answers 405 with the ones it has", (path) => {
    const mock = only(mocks.filter((candidate) => pathOf(candidate) === path));
    const answer = only<Json>(mock.Properties.Integration.IntegrationResponses);
    expect(answer.StatusCode).toBe("405");
    expect(answer).not.toHaveProperty("SelectionPattern");
    const allowed = unquote(answer.ResponseParameters["method.response.header.Allow"]).split(", ");
    expect(allowed.sort()).toEqual(
      endpoints
        .filter((row) => row.path === path)
        .map((row) => row.method)
        .sort(),
    );
    expect(answer.ResponseParameters["method.response.header.x-request-id"]).toBe("context.requestId");
    const body = answer.ResponseTemplates["application/json"].replaceAll("$context.requestId", "r-1");
    expect(JSON.parse(body)).toMatchObject({ error: { code: "method_not_allowed", request_id: "r-1" } });
  });

  test("is answered without credentials, whatever the body", () => {
    for (const { Properties } of mocks) {
      const status = Number(only<Json>(Properties.Integration.IntegrationResponses).StatusCode);
      expect(Properties.AuthorizationType).toBe("NONE");
      expect(Properties.Integration.Type).toBe("MOCK");
      // Passed through, a body would take the place of the template and make the mock fail with a 500.
      expect(Properties.Integration.PassthroughBehavior).toBe("NEVER");
      for (const template of Object.values<string>(Properties.Integration.RequestTemplates)) {
        expect(JSON.parse(template)).toEqual({ statusCode: status });
      }
      expect(Object.keys(Properties.Integration.RequestTemplates)).toContain("application/json");
    }
  });

  test("declares every header that it sends", () => {
    for (const { Properties } of mocks) {
      const sent = Object.keys(Properties.Integration.IntegrationResponses[0].ResponseParameters);
      const declared = Object.keys(Properties.MethodResponses[0].ResponseParameters);
      expect(declared.sort()).toEqual(sent.sort());
    }
  });
});

describe("a path that no endpoint has", () => {
  const endpointPaths: string[] = endpoints.map((row) => row.path);
  const others = mocks.filter((mock) => !endpointPaths.includes(pathOf(mock)));

  test("is caught wherever it branches off", () => {
    expect(others.map(pathOf).sort()).toEqual(["/", "/v1", "/v1/projects/{project_id}", "/{proxy+}"]);
  });

  test.each(others.map((mock) => [pathOf(mock), mock] as const))("%s answers 404 in our shape", (_, { Properties }) => {
    const answer = only<Json>(Properties.Integration.IntegrationResponses);
    expect(answer.StatusCode).toBe("404");
    const body = answer.ResponseTemplates["application/json"].replaceAll("$context.requestId", "r-1");
    expect(JSON.parse(body)).toMatchObject({ error: { code: "not_found", request_id: "r-1" } });
  });
});

test("the stage bounds the rate of requests", () => {
  expect(only(dev.all("AWS::ApiGateway::Stage")).Properties.MethodSettings).toMatchObject([
    { HttpMethod: "*", ResourcePath: "/*", ThrottlingRateLimit: 50, ThrottlingBurstLimit: 100 },
  ]);
});

test("the deployment comes after every method and gateway response", () => {
  const deployment = only(dev.all("AWS::ApiGateway::Deployment")) as Resource & { DependsOn: string[] };
  const parts = [...methods, ...dev.all("AWS::ApiGateway::GatewayResponse")].map(({ id }) => id);
  expect(deployment.DependsOn).toEqual(expect.arrayContaining(parts));
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

function byFile(one: { file: string }, other: { file: string }): number {
  return one.file.localeCompare(other.file);
}
