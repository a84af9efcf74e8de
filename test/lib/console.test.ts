import { contentSecurityPolicy, pageHeaders } from "../../lib/console-headers.ts";
import { type Stage, validateStage } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";
import { type Json, only, SynthesizedStack } from "./synthesized.ts";

const plain = new SynthesizedStack("console");
const withDomain = new SynthesizedStack("everyOption");
const withoutZone = new SynthesizedStack("otherForms");
const certificateArn = "arn:aws:acm:us-east-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab";

describe("the bucket", () => {
  test("blocks public access", () => {
    const { PublicAccessBlockConfiguration, WebsiteConfiguration } = only(plain.all("AWS::S3::Bucket")).Properties;
    expect(Object.values(PublicAccessBlockConfiguration)).toEqual([true, true, true, true]);
    expect(WebsiteConfiguration).toBeUndefined();
  });

  test("allows reads by its distribution only, and denies requests without TLS 1.2", () => {
    const { Statement } = only(plain.all("AWS::S3::BucketPolicy")).Properties.PolicyDocument;
    const allowed = Statement.filter(({ Effect, Principal }: Json) => Effect === "Allow" && Principal.Service);
    expect(allowed).toEqual([
      expect.objectContaining({
        Action: "s3:GetObject",
        Principal: { Service: "cloudfront.amazonaws.com" },
        Condition: { StringEquals: { "AWS:SourceArn": expect.anything() } },
      }),
    ]);
    expect(JSON.stringify(allowed[0].Condition)).toContain(only(plain.all("AWS::CloudFront::Distribution")).id);
    const denied = Statement.filter(({ Effect }: Json) => Effect === "Deny").map(({ Condition }: Json) => Condition);
    expect(denied).toEqual([
      { Bool: { "aws:SecureTransport": "false" } },
      { NumericLessThan: { "s3:TlsVersion": 1.2 } },
    ]);
  });
});

describe("the distribution", () => {
  test("signs its requests to the bucket, and redirects browsers to TLS", () => {
    const { DistributionConfig } = only(plain.all("AWS::CloudFront::Distribution")).Properties;
    expect(DistributionConfig).toMatchObject({ DefaultRootObject: "index.html", Enabled: true });
    expect(DistributionConfig.DefaultCacheBehavior.ViewerProtocolPolicy).toBe("redirect-to-https");
    expect(only(DistributionConfig.Origins)).toHaveProperty("OriginAccessControlId");
    const control = only(plain.all("AWS::CloudFront::OriginAccessControl")).Properties.OriginAccessControlConfig;
    expect(control).toMatchObject({ SigningBehavior: "always", SigningProtocol: "sigv4" });
  });

  test("has CloudFront's domain name, or a custom one with its certificate", () => {
    expect(JSON.stringify(plain.outputs.ConsoleUrl.Value)).toContain("DomainName");
    const { DistributionConfig } = only(withDomain.all("AWS::CloudFront::Distribution")).Properties;
    expect(DistributionConfig.Aliases).toEqual(["console.example.com"]);
    expect(DistributionConfig.ViewerCertificate).toMatchObject({
      AcmCertificateArn: certificateArn,
      MinimumProtocolVersion: "TLSv1.2_2021",
    });
    expect(withDomain.outputs.ConsoleUrl.Value).toBe("https://console.example.com/");
  });

  test("has DNS records in its hosted zone, or an output with their target", () => {
    const records = withDomain
      .all("AWS::Route53::RecordSet")
      .map(({ Properties }) => [Properties.Type, Properties.Name])
      .filter(([, name]) => name.startsWith("console."));
    expect(records.sort()).toEqual([
      ["A", "console.example.com."],
      ["AAAA", "console.example.com."],
    ]);
    expect(withDomain.outputs).not.toHaveProperty("ConsoleDomainTarget");
    expect(withoutZone.all("AWS::Route53::RecordSet")).toEqual([]);
    expect(withoutZone.outputs).toHaveProperty("ConsoleDomainTarget");
  });
});

test("what CloudFront keeps once per account has the region in its name, so that a stage may exist in two regions", () => {
  const name = { "Fn::Join": ["", ["test-console-", { Ref: "AWS::Region" }]] };
  const access = only(plain.all("AWS::CloudFront::OriginAccessControl")).Properties.OriginAccessControlConfig;
  const apiPageName = { "Fn::Join": ["", ["test-console-", { Ref: "AWS::Region" }, "-api-page"]] };
  const policies = plain.all("AWS::CloudFront::ResponseHeadersPolicy");
  const names = policies.map(({ Properties }) => Properties.ResponseHeadersPolicyConfig.Name);
  expect([access.Name, ...names]).toEqual([name, name, apiPageName]);
});

describe("the headers", () => {
  const configs = () =>
    withDomain
      .all("AWS::CloudFront::ResponseHeadersPolicy")
      .map(({ Properties }) => Properties.ResponseHeadersPolicyConfig);
  const config = () => configs()[0];

  test("let the page connect only to the API, and run only its own script", () => {
    const { ContentSecurityPolicy } = config().SecurityHeadersConfig;
    expect(ContentSecurityPolicy.Override).toBe(true);
    expect(ContentSecurityPolicy.ContentSecurityPolicy.split("; ")).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "font-src 'self'",
      "connect-src 'self' https://api.example.com/",
      "img-src 'self' data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]);
    expect(contentSecurityPolicy("")).toContain("connect-src 'self';");
  });

  test("of the API page differ only in the policy, whose other rules are in the page", () => {
    const [console, apiPage] = configs();
    const { ContentSecurityPolicy, ...others } = console.SecurityHeadersConfig;
    expect(apiPage.SecurityHeadersConfig).toEqual({
      ...others,
      ContentSecurityPolicy: { ContentSecurityPolicy: "frame-ancestors 'none'", Override: true },
    });
    expect(apiPage.CustomHeadersConfig).toEqual(console.CustomHeadersConfig);
    const { DistributionConfig } = only(withDomain.all("AWS::CloudFront::Distribution")).Properties;
    const { PathPattern, ResponseHeadersPolicyId, ...behavior } = only<Json>(DistributionConfig.CacheBehaviors);
    const { ResponseHeadersPolicyId: _, ...ofConsole } = DistributionConfig.DefaultCacheBehavior;
    expect({ PathPattern, behavior }).toEqual({ PathPattern: "docs.html", behavior: ofConsole });
    expect(ResponseHeadersPolicyId.Ref).toContain("ApiPageHeaders");
  });

  test("are the same as in a local run, with HSTS for two years", () => {
    expect(pageHeaders).toEqual({
      "X-Content-Type-Options": "nosniff",
      "X-Frame-Options": "DENY",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Resource-Policy": "same-origin",
      "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    });
    const { SecurityHeadersConfig, CustomHeadersConfig } = config();
    expect(SecurityHeadersConfig).toMatchObject({
      ContentTypeOptions: { Override: true },
      FrameOptions: { FrameOption: "DENY", Override: true },
      ReferrerPolicy: { ReferrerPolicy: "no-referrer", Override: true },
      StrictTransportSecurity: { AccessControlMaxAgeSec: 63_072_000, Override: true },
    });
    const custom = Object.entries(pageHeaders).filter(([name]) => /^(Cross-Origin|Permissions)/.test(name));
    expect(CustomHeadersConfig.Items).toEqual(custom.map(([Header, Value]) => ({ Header, Value, Override: true })));
  });
});

test("the page is uploaded with the API's address, and revalidated at every load", () => {
  const { Properties } = only(plain.all("Custom::CDKBucketDeployment"));
  expect(Properties.SourceObjectKeys).toHaveLength(2);
  expect(Properties.SystemMetadata).toEqual({ "cache-control": "no-cache" });
  expect(Properties.Prune).not.toBe(false);
  expect(Properties.RetainOnDelete).toBe(false);
});

test("the log of the upload is kept as long as the other logs", () => {
  const group = only(plain.all("AWS::Logs::LogGroup").filter(({ id }) => id.startsWith("ConsoleUploadLog")));
  expect(group.Properties.RetentionInDays).toBe(7);
});

test("a custom domain of the console is added to the CORS origins", () => {
  const originsOf = (more: Partial<Stage>) => validateStage({ ...stageNamed("dev"), ...more }).corsOrigins;
  const { console } = everyOption;
  const corsOrigins = ["https://app.example.com"];
  expect(originsOf({ console })).toEqual(["https://console.example.com"]);
  expect(originsOf({ console, corsOrigins })).toEqual([...corsOrigins, "https://console.example.com"]);
  expect(originsOf({ console, corsOrigins: ["https://console.example.com"] })).toEqual(["https://console.example.com"]);
  expect(originsOf({ console: true })).toBeUndefined();
});

test("a certificate of a region other than us-east-1 is rejected, because CloudFront cannot use it", () => {
  const console = {
    domain: { name: "console.example.com", certificateArn: certificateArn.replace("us-east-1", "eu-west-1") },
  };
  expect(() => validateStage({ ...stageNamed("dev"), console })).toThrow(/us-east-1/);
});
