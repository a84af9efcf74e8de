import { setTimeout as sleep } from "node:timers/promises";
import { SignatureV4 } from "@smithy/signature-v4";
import * as z from "zod/mini";
import { sqs } from "../../../functions/platform/aws.ts";

/*
 * Calls of AWS APIs that the smoke test and the drills make as an operator. They are signed requests and not SDK clients:
 * the functions need none of these clients, so they are not installed. Credentials, profile and region are those of the
 * SDK's default chain, and AWS_ENDPOINT_URL_<SERVICE> or AWS_ENDPOINT_URL sets another endpoint.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
 */

interface ServiceRow {
  /** First part of the host name, and the name in the signature. */
  host: string;
  /** Last part of AWS_ENDPOINT_URL_…. */
  env: string;
  /** Content type and target of the AWS JSON protocol; absent = another protocol. */
  json?: { version: "1.0" | "1.1"; prefix: string };
}

const services = {
  apigateway: { host: "apigateway", env: "API_GATEWAY" },
  cloudformation: { host: "cloudformation", env: "CLOUDFORMATION" },
  /** https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-protocols-faq.html */
  cloudwatch: {
    host: "monitoring",
    env: "CLOUDWATCH",
    json: { version: "1.0", prefix: "GraniteServiceVersion20100801" },
  },
  events: { host: "events", env: "EVENTBRIDGE", json: { version: "1.1", prefix: "AWSEvents" } },
  lambda: { host: "lambda", env: "LAMBDA" },
  logs: { host: "logs", env: "CLOUDWATCH_LOGS", json: { version: "1.1", prefix: "Logs_20140328" } },
  quotas: { host: "servicequotas", env: "SERVICE_QUOTAS", json: { version: "1.1", prefix: "ServiceQuotasV20190624" } },
} as const satisfies Record<string, ServiceRow>;

type ServiceKey = keyof typeof services;
type JsonService = { [Key in ServiceKey]: (typeof services)[Key] extends { json: object } ? Key : never }[ServiceKey];

/** AWS rejected a call, or the call got no response. */
export class AwsError extends Error {
  override readonly name = "AwsError";
  /** Name of the error in AWS, such as `ResourceNotFoundException`; or of the network error. */
  readonly code: string;

  constructor(action: string, code: string, message: string) {
    super(`${action}: ${code}${message === "" ? "" : `: ${message}`}`);
    this.code = code;
  }
}

/** The call cannot be signed, because credentials or region are missing. */
export class NoCredentialsError extends Error {
  override readonly name = "NoCredentialsError";
}

interface Request {
  /** Name of the call in error messages. */
  action: string;
  method: string;
  /** Path with query. */
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

const TIMEOUT_MS = 20_000;
const ATTEMPTS = 4;

/** Calls an action of the AWS JSON protocol. @throws AwsError, NoCredentialsError */
export async function callJson<Schema extends z.ZodMiniType>(
  service: JsonService,
  action: string,
  input: object,
  schema: Schema,
): Promise<z.output<Schema>> {
  const { version, prefix } = services[service].json;
  const headers = { "content-type": `application/x-amz-json-${version}`, "x-amz-target": `${prefix}.${action}` };
  const { text } = await call(service, { action, method: "POST", path: "/", headers, body: JSON.stringify(input) });
  return readAs(schema, text, action);
}

/** Calls a REST API (Lambda, API Gateway). @returns the parsed body; an empty one counts as `{}` */
export async function callRest<Schema extends z.ZodMiniType>(
  service: "apigateway" | "lambda",
  request: { action: string; method: string; path: string; body?: object },
  schema: Schema,
): Promise<z.output<Schema>> {
  const { body, ...rest } = request;
  const content = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const { text } = await call(service, { ...rest, ...content });
  return readAs(schema, text === "" ? "{}" : text, request.action);
}

/** Calls an action of CloudFormation, which speaks the Query protocol only. @returns the XML */
export async function callCloudFormation(action: string, parameters: Record<string, string>): Promise<string> {
  const body = new URLSearchParams({ Action: action, Version: "2010-05-15", ...parameters }).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  return (await call("cloudformation", { action, method: "POST", path: "/", headers, body })).text;
}

function readAs<Schema extends z.ZodMiniType>(schema: Schema, text: string, action: string): z.output<Schema> {
  const parsed = z.safeParse(schema, parseJson(text));
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path.map(String).join(".") || "the response";
  throw new AwsError(action, "UnexpectedResponse", `${path} does not have the documented form`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Sends a signed request. Throttling and errors of the server are retried, with a growing wait. */
async function call(service: ServiceKey, request: Request): Promise<Reply> {
  for (let attempt = 1; ; attempt += 1) {
    const reply = await sendOnce(service, request);
    if (reply.status < 300) return reply;
    const error = errorOf(request.action, reply);
    const isRetryable = reply.status >= 500 || /Throttl|TooManyRequests|RequestLimit|LimitExceeded/.test(error.code);
    if (!isRetryable || attempt === ATTEMPTS || isThrottledFunction(reply)) throw error;
    await sleep(250 * 2 ** attempt);
  }
}

/** Whether the function itself is throttled, not the API: a drill does this on purpose. */
const isThrottledFunction = ({ text }: Reply): boolean =>
  text.includes("ReservedFunctionConcurrentInvocationLimitExceeded");

async function sendOnce(service: ServiceKey, { action, method, path, headers, body }: Request): Promise<Reply> {
  const { host, env }: ServiceRow = services[service];
  const { region, credentials, sha256 } = await identity();
  const base = process.env[`AWS_ENDPOINT_URL_${env}`] ?? process.env.AWS_ENDPOINT_URL;
  const url = new URL(path, base ?? `https://${host}.${region}.${domainOf(region)}`);
  const signer = new SignatureV4({ service: host, region, credentials, sha256 });
  const signed = await signer.sign({
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: { ...headers, host: url.host },
    body,
  });
  try {
    const response = await fetch(url, {
      method,
      headers: signed.headers,
      ...(body !== undefined && { body }),
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    const { code, name, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
    throw new AwsError(action, code ?? name, `${url.origin}: ${message}`);
  }
}

const domainOf = (region: string): string => (region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com");

/** Returns region and credentials as the SDK finds them. @throws NoCredentialsError */
async function identity() {
  const { region, credentials, sha256 } = sqs().config;
  try {
    return { region: await region(), credentials: await credentials(), sha256 };
  } catch (error) {
    throw new NoCredentialsError(`${(error as Error).message}. Set AWS_PROFILE and AWS_REGION.`, { cause: error });
  }
}

/** Reads an error of any of the protocols: `__type` or a header names it in JSON, `<Code>` in XML. */
function errorOf(action: string, { status, headers, text }: Reply): AwsError {
  const fields = z.safeParse(errorFields, parseJson(text));
  const { __type, message, Message }: z.output<typeof errorFields> = fields.success ? fields.data : {};
  const named = headers.get("x-amzn-errortype") ?? __type ?? xmlValue(text, "Code") ?? `HTTP ${status}`;
  const code = named.replace(/^.*#/, "").replace(/:.*$/, "");
  return new AwsError(action, code, message ?? Message ?? xmlValue(text, "Message") ?? "");
}

const errorFields = z.object({
  __type: z.optional(z.string()),
  message: z.optional(z.string()),
  Message: z.optional(z.string()),
});

/** Returns the text of the first element with this name; undefined = there is none. */
export function xmlValue(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return text?.replaceAll(/&(lt|gt|quot|apos|amp);/g, (_, entity: string) => entities[entity] ?? "");
}

const entities: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
