/*
 * List prices of AWS in us-east-1 and of hosted services. Free tiers, discounts, taxes and support plans are not included.
 * Prices are those of the first volume tier, the most expensive one.
 */

/** The day on which the prices were looked up. They change without notice. */
export const PRICES_SEEN = "2026-11-21";

/**
 * The source of a price. `page`: the page of the vendor, read on the day above. `others`: a page of another author that quotes
 * it. `not verified`: commonly cited, but no page with it was found.
 */
type Evidence = "page" | "others" | "not verified";

export interface Price {
  dollars: number;
  /** The number of units that `dollars` pays for. */
  per: number;
  unit: string;
  source: string;
  evidence: Evidence;
  /** Details from the source. */
  note?: string;
}

const MILLION = 1_000_000;
/** AWS bills gigabytes as powers of two. */
const GB = 1024 ** 3;

export const prices = {
  apiRequest: {
    dollars: 3.5,
    per: MILLION,
    unit: "REST request",
    source:
      "https://docs.aws.amazon.com/whitepapers/latest/best-practices-api-gateway-private-apis-integration/cost-optimization.html",
    evidence: "page",
    note: "First 333 million a month; 2.80 after that. In units of 512 KB for HTTP APIs only.",
  },
  httpApiRequest: {
    dollars: 1,
    per: MILLION,
    unit: "HTTP API request",
    source:
      "https://docs.aws.amazon.com/whitepapers/latest/best-practices-api-gateway-private-apis-integration/cost-optimization.html",
    evidence: "page",
    note: "Not used by this service: no gateway responses and no throttling per method.",
  },
  invocation: {
    dollars: 0.2,
    per: MILLION,
    unit: "Lambda call",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
    evidence: "others",
  },
  armSecond: {
    dollars: 0.0000133334,
    per: 1,
    unit: "GB-second, arm64",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
    evidence: "others",
    note: "First 7.5 billion a month.",
  },
  x86Second: {
    dollars: 0.0000166667,
    per: 1,
    unit: "GB-second, x86",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
    evidence: "others",
  },
  write: {
    dollars: 0.625,
    per: MILLION,
    unit: "write request unit",
    source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
    evidence: "others",
    note: "On demand, since the price cut of November 2024.",
  },
  read: {
    dollars: 0.125,
    per: MILLION,
    unit: "read request unit",
    source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
    evidence: "others",
  },
  provisionedWriteHour: {
    dollars: 0.00065,
    per: 1,
    unit: "write unit per second, provisioned for an hour",
    source: "https://aws.amazon.com/dynamodb/pricing/provisioned/",
    evidence: "not verified",
  },
  provisionedReadHour: {
    dollars: 0.00013,
    per: 1,
    unit: "read unit per second, provisioned for an hour",
    source: "https://aws.amazon.com/dynamodb/pricing/provisioned/",
    evidence: "not verified",
  },
  tableStorage: {
    dollars: 0.25,
    per: GB,
    unit: "byte-month in a table",
    source: "https://aws.amazon.com/dynamodb/pricing/on-demand/",
    evidence: "not verified",
  },
  pointInTimeRecovery: {
    dollars: 0.2,
    per: GB,
    unit: "byte-month of continuous backup",
    source: "https://aws.amazon.com/dynamodb/pricing/on-demand/",
    evidence: "not verified",
  },
  queueRequest: {
    dollars: 0.4,
    per: MILLION,
    unit: "SQS request",
    source: "https://cloudburn.io/blog/amazon-sqs-pricing",
    evidence: "others",
    note: "Standard queue; each 64 KB of payload is a request, and so is a receive without messages.",
  },
  fairQueueRequest: {
    dollars: 0.1,
    per: MILLION,
    unit: "SQS request of a fair queue, on top",
    source: "https://cloudburn.io/blog/amazon-sqs-pricing",
    evidence: "others",
    note: "Applied to every request about messages with a MessageGroupId (sent, received, deleted), the more expensive interpretation. Events have none.",
  },
  logByte: {
    dollars: 0.5,
    per: GB,
    unit: "byte of log ingested",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
    evidence: "others",
    note: "Standard class. AWS adds 26 bytes per event.",
  },
  infrequentLogByte: {
    dollars: 0.25,
    per: GB,
    unit: "byte of log ingested, infrequent access",
    source: "https://aws.amazon.com/cloudwatch/pricing/",
    evidence: "not verified",
    note: "No metric filters, no embedded metrics, no live tail.",
  },
  customMetric: {
    dollars: 0.3,
    per: 1,
    unit: "custom metric per month",
    source: "https://signoz.io/guides/cloudwatch-pricing",
    evidence: "others",
    note: "Charged for hours with values.",
  },
  alarmMetric: {
    dollars: 0.1,
    per: 1,
    unit: "alarm metric per month",
    source: "https://aws.amazon.com/cloudwatch/pricing/",
    evidence: "not verified",
    note: "An alarm on an expression is charged for each metric in it.",
  },
  dashboard: {
    dollars: 3,
    per: 1,
    unit: "dashboard per month",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
    evidence: "others",
  },
  secret: {
    dollars: 0.4,
    per: 1,
    unit: "secret per month",
    source: "https://aws.amazon.com/secrets-manager/pricing/",
    evidence: "not verified",
  },
  secretRead: {
    dollars: 0.05,
    per: 10_000,
    unit: "Secrets Manager call",
    source: "https://aws.amazon.com/secrets-manager/pricing/",
    evidence: "not verified",
  },
  kmsKey: {
    dollars: 1,
    per: 1,
    unit: "customer managed key per month",
    source: "https://aws.amazon.com/kms/pricing/",
    evidence: "page",
    note: "Each yearly rotation adds a dollar a month.",
  },
  kmsRequest: {
    dollars: 0.03,
    per: 10_000,
    unit: "KMS request",
    source: "https://www.wring.co/blog/aws-kms-pricing-guide",
    evidence: "others",
  },
  webAcl: {
    dollars: 5,
    per: 1,
    unit: "web ACL of AWS WAF per month",
    source: "https://c3x.dev/blog/aws-waf-cost-explained/",
    evidence: "others",
  },
  webAclRule: {
    dollars: 1,
    per: 1,
    unit: "rule of a web ACL per month",
    source: "https://c3x.dev/blog/aws-waf-cost-explained/",
    evidence: "others",
    note: "A managed rule group counts as one rule. Those used here have no price of their own.",
  },
  firewallRequest: {
    dollars: 0.6,
    per: MILLION,
    unit: "request inspected by AWS WAF",
    source: "https://c3x.dev/blog/aws-waf-cost-explained/",
    evidence: "others",
    note: "Blocked requests count too. Up to 1,500 capacity units per web ACL.",
  },
  byteOut: {
    dollars: 0.09,
    per: GB,
    unit: "byte to the internet",
    source: "https://awsforengineers.com/blog/aws-api-gateway-pricing-explained",
    evidence: "others",
    note: "First 10 TB a month.",
  },
} as const satisfies Record<string, Price>;

export type PriceKey = keyof typeof prices;

/** Returns the price of a number of units, in dollars. */
export const dollarsFor = (key: PriceKey, units: number): number => (units * prices[key].dollars) / prices[key].per;

export interface HostedPlan {
  name: string;
  /** The part of this service that it covers. */
  does: string;
  monthlyDollars?: number;
  /** Units that the monthly price includes. */
  included?: number;
  /** Dollars per further million units; absent when no price was found. */
  perMillion?: number;
  /** The billed unit. */
  counts: string;
  source: string;
  evidence: Evidence;
}

/** Public prices of hosted services for webhooks and API keys. */
export const hosted: readonly HostedPlan[] = [
  {
    name: "Svix Professional",
    does: "sends webhooks",
    monthlyDollars: 490,
    included: 50_000,
    perMillion: 100,
    counts: "messages; retries are free",
    source: "https://www.svix.com/pricing/ as transcribed on 2026-09-20 in github.com/api-evangelist/svix",
    evidence: "others",
  },
  {
    name: "Svix Free",
    does: "sends webhooks",
    monthlyDollars: 0,
    included: 50_000,
    perMillion: 100,
    counts: "messages; retries are free",
    source: "https://www.svix.com/pricing/ as transcribed on 2026-09-20 in github.com/api-evangelist/svix",
    evidence: "others",
  },
  {
    name: "Hookdeck Team",
    does: "receives and forwards webhooks",
    monthlyDollars: 39,
    included: 10_000,
    counts: "events, metered above the included number; the rate was not found",
    source: "https://hookdeck.com/pricing as transcribed on 2026-09-20 in github.com/api-evangelist/hookdeck",
    evidence: "others",
  },
  {
    name: "Convoy Premium",
    does: "sends webhooks, self-hosted",
    monthlyDollars: 999,
    perMillion: 0,
    counts: "flat; plus machines, database and Redis. The price of its cloud was not found",
    source: "https://www.getconvoy.io/pricing as transcribed on 2026-09-20 in github.com/api-evangelist/convoy",
    evidence: "others",
  },
  {
    name: "Unkey",
    does: "verifies API keys",
    counts: "credits; no price of a verification was found",
    source: "https://www.unkey.com/pricing",
    evidence: "not verified",
  },
];
