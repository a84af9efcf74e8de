import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { createConsole } from "../../lib/console.ts";
import { contentSecurityPolicy, pageHeaders } from "../../lib/console-headers.ts";
import { type Stage, validStage } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";
import { writeConsole } from "../../packages/console/build.ts";
import { type Json, only } from "./synthesised.ts";

/* The console on AWS: a private bucket that CloudFront alone reads, and headers that guard the page. */

const page = mkdtempSync(join(tmpdir(), "page-"));
afterAll(() => rmSync(page, { recursive: true, force: true }));

const named = {
  domain: {
    name: "console.example.com",
    certificateArn: "arn:aws:acm:us-east-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
    hostedZone: { id: "Z0123456789ABCDEFGHIJ", name: "example.com" },
  },
};
const elsewhere = { domain: { ...named.domain, hostedZone: undefined } };
const apiUrl = "https://api.example.com/prod";

interface Console {
  template: Json;
  all(type: string): Json[];
}

function synthesise(console: NonNullable<Stage["console"]>): Console {
  const stack = new Stack(new App({ analyticsReporting: false }), "test");
  createConsole(stack, { stage: { logRetention: RetentionDays.ONE_WEEK }, console, apiUrl, page });
  const template = Template.fromStack(stack).toJSON();
  const all = (type: string) => Object.values<Json>(template.Resources).filter(({ Type }) => Type === type);
  return { template, all };
}

let plain: Console;
let withName: Console;
let withoutZone: Console;

beforeAll(async () => {
  await writeConsole(page);
  [plain, withName, withoutZone] = [synthesise(true), synthesise(named), synthesise(elsewhere)];
});

describe("the bucket", () => {
  test("is closed to everybody, takes TLS only and encrypts", () => {
    const { Properties } = only(plain.all("AWS::S3::Bucket"));
    expect(Properties.PublicAccessBlockConfiguration).toEqual({
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    });
    expect(Properties.BucketEncryption.ServerSideEncryptionConfiguration).toHaveLength(1);
    expect(Properties).not.toHaveProperty("WebsiteConfiguration");
  });

  test("lets this distribution read, and refuses what does not come by TLS", () => {
    const { Statement } = only(plain.all("AWS::S3::BucketPolicy")).Properties.PolicyDocument;
    const allowed = Statement.filter(({ Effect }: Json) => Effect === "Allow");
    expect(allowed).toEqual([
      expect.objectContaining({
        Action: "s3:GetObject",
        Principal: { Service: "cloudfront.amazonaws.com" },
        Condition: { StringEquals: { "AWS:SourceArn": expect.anything() } },
      }),
    ]);
    const denied = Statement.filter(({ Effect }: Json) => Effect === "Deny").map(({ Condition }: Json) => Condition);
    expect(denied).toContainEqual({ Bool: { "aws:SecureTransport": "false" } });
  });
});

describe("the distribution", () => {
  test("signs what it asks of the bucket, and speaks TLS to browsers", () => {
    const { DistributionConfig } = only(plain.all("AWS::CloudFront::Distribution")).Properties;
    expect(DistributionConfig).toMatchObject({ DefaultRootObject: "index.html", Enabled: true });
    expect(DistributionConfig.DefaultCacheBehavior.ViewerProtocolPolicy).toBe("redirect-to-https");
    expect(only(DistributionConfig.Origins)).toHaveProperty("OriginAccessControlId");
    const control = only(plain.all("AWS::CloudFront::OriginAccessControl")).Properties.OriginAccessControlConfig;
    expect(control).toMatchObject({ SigningBehavior: "always", SigningProtocol: "sigv4" });
  });

  test("has CloudFront's name, or its own with its certificate", () => {
    expect(JSON.stringify(plain.template.Outputs.ConsoleUrl.Value)).toContain("DomainName");
    const { DistributionConfig } = only(withName.all("AWS::CloudFront::Distribution")).Properties;
    expect(DistributionConfig.Aliases).toEqual(["console.example.com"]);
    expect(DistributionConfig.ViewerCertificate).toMatchObject({
      AcmCertificateArn: named.domain.certificateArn,
      MinimumProtocolVersion: "TLSv1.2_2021",
    });
    expect(withName.template.Outputs.ConsoleUrl.Value).toBe("https://console.example.com/");
  });

  test("is put into the zone, or its target is told", () => {
    const records = withName.all("AWS::Route53::RecordSet").map(({ Properties }) => [Properties.Type, Properties.Name]);
    expect(records.sort()).toEqual([
      ["A", "console.example.com."],
      ["AAAA", "console.example.com."],
    ]);
    expect(withName.template.Outputs).not.toHaveProperty("ConsoleDomainTarget");
    expect(withoutZone.all("AWS::Route53::RecordSet")).toEqual([]);
    expect(withoutZone.template.Outputs).toHaveProperty("ConsoleDomainTarget");
  });
});

describe("the headers", () => {
  const config = () => only(plain.all("AWS::CloudFront::ResponseHeadersPolicy")).Properties.ResponseHeadersPolicyConfig;

  test("let the page speak to this API and to nobody else", () => {
    const { ContentSecurityPolicy } = config().SecurityHeadersConfig;
    expect(ContentSecurityPolicy).toEqual({ ContentSecurityPolicy: contentSecurityPolicy(apiUrl), Override: true });
    const rules = ContentSecurityPolicy.ContentSecurityPolicy.split("; ");
    expect(rules).toContain("connect-src 'self' https://api.example.com/prod/");
    expect(rules).toContain("default-src 'none'");
    expect(rules.join()).not.toMatch(/unsafe|\*|http:/);
  });

  test("are all those of a local run, and TLS for two years", () => {
    const { SecurityHeadersConfig, CustomHeadersConfig } = config();
    expect(SecurityHeadersConfig).toMatchObject({
      ContentTypeOptions: { Override: true },
      FrameOptions: { FrameOption: pageHeaders["X-Frame-Options"], Override: true },
      ReferrerPolicy: { ReferrerPolicy: pageHeaders["Referrer-Policy"], Override: true },
      StrictTransportSecurity: { AccessControlMaxAgeSec: 63_072_000, Override: true },
    });
    const custom = CustomHeadersConfig.Items.map(({ Header, Value }: Json) => [Header, Value]);
    const byMeaning = ["X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"];
    expect(new Set([...byMeaning, ...custom.map(([name]: string[]) => name)])).toEqual(
      new Set(Object.keys(pageHeaders)),
    );
    for (const [name, value] of custom) expect(pageHeaders[name as keyof typeof pageHeaders]).toBe(value);
  });
});

test("the page is uploaded with the API's address beside it, and asked for anew at every load", () => {
  const { Properties } = only(plain.all("Custom::CDKBucketDeployment"));
  expect(Properties.SourceObjectKeys).toHaveLength(2);
  expect(Properties.SystemMetadata).toEqual({ "cache-control": "no-cache" });
  expect(Properties.Prune).not.toBe(false);
});

test("the log of the upload is kept as long as the others", () => {
  const groups = plain.all("AWS::Logs::LogGroup");
  expect(groups.map(({ Properties }) => Properties.RetentionInDays)).toEqual([7]);
});

test("a console with a name of its own may call the API, beside the pages that the stage names", () => {
  const originsOf = (more: Partial<Stage>) => validStage({ ...stageNamed("dev"), ...more }).corsOrigins;
  const corsOrigins = ["https://app.example.com"];
  expect(originsOf({ console: named })).toEqual(["https://console.example.com"]);
  expect(originsOf({ console: named, corsOrigins })).toEqual([...corsOrigins, "https://console.example.com"]);
  expect(originsOf({ console: true })).toBeUndefined();
});

test("a certificate of another region is refused: CloudFront would not find it", () => {
  const certificateArn = named.domain.certificateArn.replace("us-east-1", "eu-west-1");
  const console = { domain: { ...named.domain, certificateArn } };
  expect(() => validStage({ ...stageNamed("dev"), console })).toThrow(/us-east-1/);
});
