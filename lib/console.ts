import { CfnOutput, Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import * as cloudfront from "aws-cdk-lib/aws-cloudfront";
import { S3BucketOrigin } from "aws-cdk-lib/aws-cloudfront-origins";
import { LogGroup } from "aws-cdk-lib/aws-logs";
import * as route53 from "aws-cdk-lib/aws-route53";
import { CloudFrontTarget } from "aws-cdk-lib/aws-route53-targets";
import * as s3 from "aws-cdk-lib/aws-s3";
import { BucketDeployment, CacheControl, Source } from "aws-cdk-lib/aws-s3-deployment";
import { Construct } from "constructs";
import { API_PAGE, apiPagePolicy, contentSecurityPolicy, pageCacheControl, pageHeaders } from "./console-headers.ts";
import type { KmsKey } from "./kms-key.ts";
import { globalName } from "./names.ts";
import type { Stage } from "./stage.ts";

/*
 * The console on AWS: a page of static files in a private bucket that only CloudFront can read. It has no server and no
 * permissions of its own: the API authorizes each request of its user.
 */

type ConsoleOptions = NonNullable<Stage["console"]>;
type ConsoleDomain = Exclude<ConsoleOptions, true>["domain"];

interface ConsoleProps {
  stage: Pick<Stage, "logRetention">;
  console: ConsoleOptions;
  /** Address of the API without a trailing slash. */
  apiUrl: string;
  /** Folder with the page's files, built by packages/console/build.ts. */
  page: string;
  key?: KmsKey | undefined;
}

/** Deploys the console, and the API page at `docs.html`, to S3 and CloudFront. @returns its address, the output ConsoleUrl */
export function createConsole(scope: Construct, props: ConsoleProps): string {
  const folder = new Construct(scope, "Console");
  const domain = props.console === true ? undefined : props.console.domain;
  const bucket = new s3.Bucket(folder, "Page", {
    blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
    objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    // The customer managed KMS key is not used, because these files are public.
    encryption: s3.BucketEncryption.S3_MANAGED,
    // Every deployment uploads all files again, so there is nothing to retain.
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const originAccessControl = new cloudfront.S3OriginAccessControl(folder, "AccessControl", {
    originAccessControlName: globalName(Stack.of(scope)),
  });
  const name = globalName(Stack.of(scope));
  const behavior = {
    origin: S3BucketOrigin.withOriginAccessControl(bucket, { originAccessControl }),
    viewerProtocolPolicy: cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
    cachePolicy: cloudfront.CachePolicy.CACHING_OPTIMIZED,
  };
  const headers = createHeadersPolicy(folder, "Headers", name, contentSecurityPolicy(props.apiUrl));
  const apiPageHeaders = createHeadersPolicy(folder, "ApiPageHeaders", `${name}-api-page`, apiPagePolicy);
  const distribution = new cloudfront.Distribution(folder, "Distribution", {
    comment: `Console of ${Stack.of(scope).stackName}`,
    defaultRootObject: "index.html",
    defaultBehavior: { ...behavior, responseHeadersPolicy: headers },
    additionalBehaviors: { [API_PAGE]: { ...behavior, responseHeadersPolicy: apiPageHeaders } },
    // The cheapest price class: more distant edge locations do not noticeably delay small files.
    priceClass: cloudfront.PriceClass.PRICE_CLASS_100,
    httpVersion: cloudfront.HttpVersion.HTTP2_AND_3,
    ...(domain && {
      domainNames: [domain.name],
      certificate: Certificate.fromCertificateArn(folder, "Certificate", domain.certificateArn),
    }),
  });
  uploadPage(folder, bucket, props);
  if (domain) addDomainRecords(folder, distribution, domain);
  const address = `https://${domain?.name ?? distribution.domainName}/`;
  new CfnOutput(Stack.of(scope), "ConsoleUrl", { value: address });
  return address;
}

/** CloudFront sets these as security headers and rejects them as custom headers. */
const securityHeaderNames = ["X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"];

function createHeadersPolicy(folder: Construct, id: string, name: string, policy: string) {
  const others = Object.entries(pageHeaders).filter(([name]) => !securityHeaderNames.includes(name));
  return new cloudfront.ResponseHeadersPolicy(folder, id, {
    responseHeadersPolicyName: name,
    comment: `Console of ${Stack.of(folder).stackName}`,
    securityHeadersBehavior: {
      contentSecurityPolicy: { contentSecurityPolicy: policy, override: true },
      contentTypeOptions: { override: true },
      frameOptions: { frameOption: cloudfront.HeadersFrameOption.DENY, override: true },
      referrerPolicy: { referrerPolicy: cloudfront.HeadersReferrerPolicy.NO_REFERRER, override: true },
      strictTransportSecurity: { accessControlMaxAge: Duration.days(730), override: true },
    },
    customHeadersBehavior: {
      customHeaders: others.map(([header, value]) => ({ header, value, override: true })),
    },
  });
}

/** Uploads the page at each deployment with CDK's own Lambda: CloudFormation cannot upload files. */
function uploadPage(folder: Construct, bucket: s3.Bucket, { page, apiUrl, stage, key }: ConsoleProps): void {
  new BucketDeployment(folder, "Upload", {
    destinationBucket: bucket,
    sources: [Source.asset(page), Source.jsonData("config.json", { apiUrl, isLocal: false })],
    cacheControl: [CacheControl.fromString(pageCacheControl)],
    // Delete the files with the stack: CloudFormation can only delete an empty bucket.
    retainOnDelete: false,
    memoryLimit: 256,
    logGroup: new LogGroup(folder, "UploadLog", {
      retention: stage.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
      ...(key && { encryptionKey: key }),
    }),
  });
}

function addDomainRecords(folder: Construct, distribution: cloudfront.Distribution, domain: ConsoleDomain): void {
  if (!domain.hostedZone) {
    new CfnOutput(Stack.of(folder), "ConsoleDomainTarget", { value: distribution.domainName });
    return;
  }
  const { id: hostedZoneId, name: zoneName } = domain.hostedZone;
  const zone = route53.HostedZone.fromHostedZoneAttributes(folder, "Zone", { hostedZoneId, zoneName });
  const target = route53.RecordTarget.fromAlias(new CloudFrontTarget(distribution));
  // The trailing dot marks the name as complete. Without it CDK appends the name of the zone.
  const record = { zone, target, recordName: `${domain.name}.` };
  new route53.ARecord(folder, "IPv4", record);
  new route53.AaaaRecord(folder, "IPv6", record);
}
