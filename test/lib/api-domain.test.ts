import { dev, only, SynthesizedStack } from "./synthesized.ts";

const withZone = new SynthesizedStack("everyOption");
const withoutZone = new SynthesizedStack("otherForms");

test("a custom domain replaces the address of API Gateway", () => {
  for (const stack of [withZone, withoutZone]) {
    expect(stack.outputs.ApiUrl.Value).toBe("https://api.example.com");
    expect(only(stack.all("AWS::ApiGateway::RestApi")).Properties.DisableExecuteApiEndpoint).toBe(true);
  }
  expect(only(dev.all("AWS::ApiGateway::RestApi")).Properties.DisableExecuteApiEndpoint).toBe(false);
  expect(dev.all("AWS::ApiGateway::DomainName")).toEqual([]);
});

const tls = { SecurityPolicy: "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09", EndpointAccessMode: "STRICT" };

test("the API rejects TLS before 1.2, and requests to another host than the one they connect to", () => {
  for (const stack of [dev, withZone]) {
    expect(only(stack.all("AWS::ApiGateway::RestApi")).Properties).toMatchObject(tls);
  }
});

test("the domain leads to the stage, with its certificate, and rejects TLS before 1.2", () => {
  const name = only(withZone.all("AWS::ApiGateway::DomainName"));
  expect(name.Properties).toMatchObject({
    DomainName: "api.example.com",
    ...tls,
    RegionalCertificateArn: "arn:aws:acm:eu-west-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
  });
  const { DomainName, Stage } = only(withZone.all("AWS::ApiGateway::BasePathMapping")).Properties;
  expect(withZone.target(DomainName).id).toBe(name.id);
  expect(withZone.target(Stage).Type).toBe("AWS::ApiGateway::Stage");
});

test("with a hosted zone the stack creates the DNS record, for IPv4: the domain answers on nothing else", () => {
  const { EndpointConfiguration } = only(withZone.all("AWS::ApiGateway::DomainName")).Properties;
  expect(EndpointConfiguration).toEqual({ Types: ["REGIONAL"] });
  const records = withZone
    .all("AWS::Route53::RecordSet")
    .map(({ Properties }) => [Properties.Type, Properties.Name, Properties.HostedZoneId])
    .filter(([, name]) => name.startsWith("api."));
  expect(records.sort()).toEqual([["A", "api.example.com.", "Z0123456789ABCDEFGHIJ"]]);
  expect(withZone.outputs).not.toHaveProperty("ApiDomainTarget");
});

test("without a hosted zone the stack outputs the target of the DNS records", () => {
  expect(withoutZone.all("AWS::Route53::RecordSet")).toEqual([]);
  expect(withoutZone.outputs).toHaveProperty("ApiDomainTarget");
});
