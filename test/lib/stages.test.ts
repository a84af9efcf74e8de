import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import type { Stage } from "../../lib/stage.ts";
import { firewallOf, InvalidStageError, reservedConcurrencyOf, validateStage } from "../../lib/stage.ts";
import { readContext, stageNamed, stages } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";

test("the default stage is dev", () => {
  expect(stageNamed(undefined).name).toBe("dev");
});

test("the stages have these options", () => {
  expect(Object.fromEntries(stages.map((stage) => [stage.name, stageNamed(stage.name)]))).toEqual({
    dev: {
      name: "dev",
      keepsData: false,
      bootstrapQualifier: "hooksdev",
      logRetention: 7,
      throttle: { requestsPerSecond: 50, burst: 100 },
      deploysGradually: false,
    },
    prod: {
      name: "prod",
      keepsData: true,
      jwt: { issuer: "https://id.example.com/", audience: "https://api.example.com" },
      bootstrapQualifier: "hooksprod",
      logRetention: 90,
      throttle: { requestsPerSecond: 1_000, burst: 2_000 },
      deploysGradually: true,
    },
  });
});

test("each stage has bootstrap roles of its own", () => {
  expect(new Set(stages.map(({ bootstrapQualifier }) => bootstrapQualifier)).size).toBe(stages.length);
});

test.each(["nope", "", "Prod", 1])("the unknown stage %j is rejected with the names of the known ones", (name) => {
  expect(() => stageNamed(name)).toThrow(`No stage named ${JSON.stringify(name)}. Known stages: dev, prod.`);
});

test.each([
  [{}, "dev", false],
  [{ stage: "prod" }, "prod", false],
  [{ stage: "prod", urgent: "true" }, "prod", true],
  [{ stage: "prod", urgent: "false" }, "prod", false],
])("the context %j deploys %s, urgent: %j", (context: Record<string, string>, name, isUrgent) => {
  const found = readContext({ "@aws-cdk/aws-iam:minimizePolicies": true, "aws:cdk:toolkit": "1", ...context });
  expect([found.stage.name, found.isUrgent]).toEqual([name, isUrgent]);
});

test("an unknown context key is rejected with the names of the known ones", () => {
  expect(() => readContext({ stag: "prod" })).toThrow('Unknown context key "stag". Known keys: stage, urgent.');
});

test("a stage may have every option at once", () => {
  const corsOrigins = [...everyOption.corsOrigins, "https://console.example.com"];
  expect(validateStage(everyOption)).toEqual({ ...everyOption, corsOrigins });
});

const key = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";

const github = { name: "github", audience: "a" };
const ciAt = (issuer: string | undefined) => ({ name: "ci", audience: "a", issuer });

test.each<[string, unknown, string]>([
  ["name", "Prod", "name: must be 1 to 20 lower-case letters"],
  ["name", "a-name-that-is-much-too-long", "name: must be 1 to 20"],
  ["bootstrapQualifier", "hooks-dev", "bootstrapQualifier: must be 1 to 10 lower-case letters and digits"],
  ["bootstrapQualifier", "hooksstaging", "bootstrapQualifier: must be 1 to 10"],
  ["breakGlassRole", "*", "breakGlassRole: must be the name of a role, such as operations/break-glass"],
  ["breakGlassRole", "arn:aws:iam::111122223333:role/a", "breakGlassRole: must be the name of a role"],
  ["env", { account: "1111222233334", region: "eu-west-1" }, "env.account: must be the 12 digits of an account"],
  ["env", { account: "111122223333", region: "eu-west-1a" }, "env.region: must be a region such as eu-west-1"],
  ["alarms", false, "alarmEmail: receives nothing with alarms: false"],
  ["logRetention", 8, "logRetention: "],
  ["jwt", { secretArn: "provider-secret" }, "jwt.secretArn: must be an ARN such as arn:aws:secretsmanager"],
  [
    "jwt",
    { secretArn: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider" },
    "including the six random characters at its end",
  ],
  ["jwt", { isuer: "typo" }, 'jwt: Unrecognized key: "isuer"'],
  ["jwks", { issuer: "http://id.example" }, "jwks.issuer: must be an https URL"],
  ["jwks", {}, "jwks.issuer: "],
  ["jwks", { issuer: "https://id.example" }, "jwks.audience: is required"],
  ["jwks", { issuer: "https://id.example", audience: "" }, "jwks.audience: "],
  ["jwks", { issuer: "https://id.example", audience: [] }, "jwks.audience: "],
  ["jwks", { issuer: "https://id.example", audience: "web,mobile" }, "jwks.audience: must be text without commas"],
  ["jwks", { issuer: "https://id.example", audience: "web", audienceClaim: "sub" }, "jwks.audienceClaim: "],
  ["jwt", { requiresIssuedAt: "true" }, "jwt.requiresIssuedAt: "],
  ["workflowIssuers", [], "workflowIssuers: "],
  ["workflowIssuers", [{ name: "github" }], "workflowIssuers.0.audience: is required"],
  ["workflowIssuers", [{ name: "CI", audience: "a" }], "workflowIssuers.0.name: must be 1 to 32 lower-case"],
  ["workflowIssuers", [ciAt(undefined)], "workflowIssuers.0.issuer: is required"],
  ["workflowIssuers", [ciAt("http://127.0.0.1:4999")], "workflowIssuers.0.issuer: must be an https URL"],
  ["workflowIssuers", [{ ...github, claims: "travis" }], "workflowIssuers.0.claims: "],
  [
    "workflowIssuers",
    [ciAt("https://ci.example"), ciAt("https://other.example")],
    "workflowIssuers: must have different names",
  ],
  [
    "workflowIssuers",
    [github, ciAt("https://token.actions.githubusercontent.com")],
    "workflowIssuers: must have different issuers",
  ],
  ["workflowIssuers", [ciAt(everyOption.jwt?.issuer)], "workflowIssuers: must not contain the issuer of users"],
  ["workflowIssuers", [ciAt(everyOption.jwks?.issuer)], "workflowIssuers: must not contain the issuer of users"],
  ["workflowIssuers", [ciAt("https://ID.example.com/")], "workflowIssuers: must not contain the issuer of users"],
  ["workflowIssuers", [ciAt("https://sso.example.com")], "workflowIssuers: must not contain the issuer of users"],
  ["permissions", [], "permissions: "],
  [
    "permissions",
    [{ name: "webhooks:push", description: "push" }],
    "permissions.0.name: must be at most 40 characters",
  ],
  ["permissions", [{ name: "registry", description: "push" }], "permissions.0.name: must be at most 40 characters"],
  ["permissions", [{ name: "registry:push", description: " " }], "permissions.0.description: must be text of at most"],
  ["permissions", [{ name: "registry:push" }], "permissions.0.description: "],
  [
    "permissions",
    Array(2).fill({ name: "registry:push", description: "push" }),
    "permissions: must have different names",
  ],
  [
    "legacySignatureHeader",
    { name: "Host", until: "2027-01-31" },
    "legacySignatureHeader: must have a name of a header",
  ],
  ["legacySignatureHeader", { name: "X-A", until: "soon" }, "legacySignatureHeader: must have a name of a header"],
  ["legacySignatureHeader", { name: "X-A" }, "legacySignatureHeader: must have"],
  ["importedKeys", [], "importedKeys: "],
  ["importedKeys", [{ prefix: "svc_", hash: "sha256" }], "importedKeys.0.prefix: must be 2 to 20 characters"],
  ["importedKeys", [{ prefix: "ey", hash: "sha256" }], "importedKeys.0.prefix: must be 2 to 20 characters"],
  ["importedKeys", [{ prefix: "acme_", hash: "md5" }], "importedKeys.0.hash: "],
  ["importedKeys", Array(2).fill({ prefix: "acme_", hash: "sha256" }), "importedKeys: must have prefixes that do not"],
  ["importedKeys", [{ prefix: "acme_", hash: "sha256" }], "importedKeysPepper: is needed for keys with the hash hmac"],
  ["importedKeysPepper", undefined, "importedKeysPepper: is needed for keys with the hash hmac-sha256"],
  ["importedKeysPepper", { secretArn: "pepper" }, "importedKeysPepper.secretArn: must be an ARN"],
  ["deliveries", { retrySchedule: [] }, "deliveries.retrySchedule: "],
  ["deliveries", { retrySchedule: [5, 1.5] }, "deliveries.retrySchedule.1: "],
  [
    "domain",
    { name: "https://api.example.com", certificateArn: everyOption.domain?.certificateArn },
    "domain.name: must be a host name",
  ],
  [
    "domain",
    { name: "api.example.com", certificateArn: key },
    "domain.certificateArn: must be an ARN such as arn:aws:acm",
  ],
  ["corsOrigins", [], "corsOrigins: "],
  ["corsOrigins", ["https://app.example.com/"], "corsOrigins.0: must be an origin"],
  ["corsOrigins", ["*"], "corsOrigins.0: must be an origin"],
  ["firewall", { requestsPerMinute: 100 }, "firewall: "],
  ["firewall", true, "firewall: "],
  ["reservedConcurrency", { recover: 0 }, "reservedConcurrency.recover: "],
  ["reservedConcurrency", { send: 10 }, "reservedConcurrency: "],
  ["kmsKey", "alias/mine", "kmsKey: "],
  ["kmsKey", "arn:aws:kms:eu-west-1:111122223333:alias/mine", "kmsKey: "],
  ["alarmEmail", "ops", "alarmEmail: must be an email address"],
  ["eventProducers", ["arn:aws:s3:::bucket"], "eventProducers.0: must be the ARN of an IAM role"],
  ["eventProducers", ["*"], "eventProducers.0: must be the ARN"],
  ["projectsTable", { name: "a b" }, "projectsTable.name: "],
  ["projectsTable", { name: "projects", kmsKeyArn: `${key} ` }, "projectsTable.kmsKeyArn: "],
  ["kmsKey", ` ${key}`, "kmsKey: "],
  ["alarmMail", "ops@example.com", 'stage: Unrecognized key: "alarmMail"'],
])("%s: %j is rejected with a message that names the option", (option, value, message) => {
  const validate = () => validateStage({ ...everyOption, [option]: value } as Stage);
  expect(validate).toThrow(InvalidStageError);
  expect(validate).toThrow(message);
});

const signIn = { issuer: "https://id.example.com", audience: "platform" };
const throttle = { requestsPerSecond: 1, burst: 1 };

test.each<[string, accepted: unknown, rejected: unknown]>([
  ["name", "a".repeat(20), "a".repeat(21)],
  ["throttle", throttle, { ...throttle, burst: 0 }],
  ["throttle", throttle, { ...throttle, requestsPerSecond: 0 }],
  ["jwt", { ...signIn, maxLifetimeSeconds: 1 }, { ...signIn, maxLifetimeSeconds: 0 }],
  ["jwt", { ...signIn, requiredClaims: { a: [1] } }, { ...signIn, requiredClaims: { a: [] } }],
  ["jwt", { ...signIn, issuer: "i" }, { ...signIn, issuer: "" }],
  ["jwt", { ...signIn, audience: "a" }, { ...signIn, audience: "" }],
  ["eventPollers", 2, 1],
  ["eventPollers", 200, 201],
  ["deliveries", { retrySchedule: Array(20).fill(0) }, { retrySchedule: Array(21).fill(0) }],
  ["deliveries", { retrySchedule: [0] }, { retrySchedule: [-1] }],
  ["deliveries", { disableAfterSeconds: 0 }, { disableAfterSeconds: -1 }],
  ["deliveries", { disableAfterSeconds: 999_999_999 }, { disableAfterSeconds: 1_000_000_000 }],
  ["firewall", { requestsPerMinutePerAddress: 10 }, { requestsPerMinutePerAddress: 9 }],
  ["firewall", { requestsPerMinutePerCredential: 10 }, { requestsPerMinutePerCredential: 9 }],
  ["firewall", { requestsPerMinutePerCredential: 2_000_000_000 }, { requestsPerMinutePerCredential: 2_000_000_001 }],
  ["reservedConcurrency", { authorizer: 1 }, { authorizer: 0 }],
  ["reservedConcurrency", { verify: 1 }, { verify: 0 }],
  ["projectsTable", { name: "abc" }, { name: "ab" }],
  ["projectsTable", { name: "a".repeat(255) }, { name: "a".repeat(256) }],
])("%s: %j is accepted and %j is rejected", (option, accepted, rejected) => {
  expect(validateStage({ ...everyOption, [option]: accepted } as Stage)).toMatchObject({ [option]: accepted });
  expect(() => validateStage({ ...everyOption, [option]: rejected } as Stage)).toThrow(InvalidStageError);
});

const stageWith = (keepsData: boolean, options: Partial<Stage>): Stage =>
  validateStage({ ...stageNamed("dev"), keepsData, jwt: signIn, ...options });

const defaultLimits = { requestsPerMinutePerAddress: 6_000, requestsPerMinutePerCredential: 3_000 };

test.each<[string, boolean, Stage["firewall"], ReturnType<typeof firewallOf>]>([
  ["on where data is kept", true, undefined, defaultLimits],
  ["off where data is not kept", false, undefined, undefined],
  ["off where data is kept and the option is false", true, false, undefined],
  [
    "on where data is not kept and the option has a limit, with the default of the other limit",
    false,
    { requestsPerMinutePerAddress: 100 },
    { ...defaultLimits, requestsPerMinutePerAddress: 100 },
  ],
  ["on with the defaults where the option has no limit", false, {}, defaultLimits],
])("the firewall is %s", (_, keepsData, firewall, limits) => {
  expect(firewallOf(stageWith(keepsData, firewall === undefined ? {} : { firewall }))).toEqual(limits);
});

test.each<[string, boolean, Stage["reservedConcurrency"], ReturnType<typeof reservedConcurrencyOf>]>([
  ["on where data is kept", true, undefined, { authorizer: 200, recover: 70 }],
  ["off where data is not kept: a new account may have 10", false, undefined, {}],
  ["off where data is kept and the option is false", true, false, {}],
  [
    "on where data is not kept and the option has a number, with the default of the other one",
    false,
    { authorizer: 5 },
    { authorizer: 5, recover: 70 },
  ],
  [
    "on for credentials-verify if the option has a number",
    true,
    { verify: 50 },
    { authorizer: 200, recover: 70, verify: 50 },
  ],
])("the reserved concurrency is %s", (_, keepsData, reservedConcurrency, expected) => {
  const options = reservedConcurrency === undefined ? {} : { reservedConcurrency };
  expect(reservedConcurrencyOf(stageWith(keepsData, options))).toEqual(expected);
});

test("recover needs no more than its reservation at the rate of its throttle", () => {
  const throttle = endpointRows.find(({ id }) => id === "recoverDeliveries")?.throttle;
  // A call ends after 20 seconds.
  const atMost = (throttle?.burst ?? 0) + 20 * (throttle?.requestsPerSecond ?? Number.NaN);
  expect(reservedConcurrencyOf(stageNamed("prod")).recover).toBe(atMost);
});

describe("an option that is an ARN", () => {
  const arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf";
  const validate = (secretArn: string) => validateStage({ ...stageNamed("dev"), jwt: { secretArn } });

  test.each([arn, arn.replace("arn:aws:", "arn:aws-cn:")])("accepts %s", (accepted) => {
    expect(() => validate(accepted)).not.toThrow();
  });

  test.each([
    ["no region", arn.replace("eu-west-1", "")],
    ["an account of 11 digits", arn.replace("111122223333", "11112222333")],
    ["an account of 13 digits", arn.replace("111122223333", "1111222233334")],
    ["another service", arn.replace(/^arn:aws:\w+/, "arn:aws:s3")],
    ["text before it", ` ${arn}`],
    ["text after it", `${arn} `],
  ])("rejects one with %s", (_problem, rejected) => {
    expect(() => validate(rejected)).toThrow(InvalidStageError);
  });
});

test("the error names every option that is not valid", () => {
  const wrong = { ...everyOption, alarmEmail: "x", firewall: { requestsPerMinutePerAddress: 1 } };
  expect(() => validateStage(wrong)).toThrow(/firewall.*alarmEmail/s);
});
