import { Resolver } from "node:dns";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { protectFiles, readSettings, setFunctionDefaults } from "../../../bin/command/settings.ts";
import { settings as functionSettings } from "../../../functions/foundation/platform/env.ts";
import { SettingError } from "../../../functions/foundation/platform/errors.ts";

/* The settings of a local run: defaults, and one sentence for each mistake. */

const scratch = mkdtempSync(join(tmpdir(), "settings-"));
const dataDir = join(scratch, "data");
afterAll(() => rmSync(scratch, { recursive: true }));

const saved = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in saved)) delete process.env[name];
  Object.assign(process.env, saved);
});

const read = (env: Record<string, string> = {}) => readSettings({ DATA_DIR: dataDir, ...env });

test("without any setting the ports are 3000 and 3001, and the engines are embedded", () => {
  expect(read()).toEqual({
    port: 3000,
    sqsPort: 3001,
    dataDir,
    jwtSecret: expect.stringMatching(/^[0-9a-f]{64}$/),
    isSecretGiven: false,
    dynamoEndpoint: undefined,
    sqsEndpoint: undefined,
    snsEndpoint: undefined,
    deliveryBatchSize: 10,
  });
  expect(read({ PORT: "0", SQS_PORT: "65535", AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:4566//" })).toMatchObject({
    port: 0,
    sqsPort: 65_535,
    sqsEndpoint: "http://127.0.0.1:4566",
  });
  expect(read({ DELIVERY_BATCH_SIZE: "10" }).deliveryBatchSize).toBe(10);
});

test("the data directory is .local in the current folder", () => {
  const before = process.cwd();
  process.chdir(scratch);
  try {
    expect(readSettings({}).dataDir).toBe(".local");
    expect(existsSync(join(scratch, ".local/jwt-secret"))).toBe(true);
  } finally {
    process.chdir(before);
  }
});

test("the secret is created once, and only its owner can read it", () => {
  const path = join(dataDir, "jwt-secret");
  const { jwtSecret } = read();
  expect(read().jwtSecret).toBe(jwtSecret);
  expect(readFileSync(path, "utf8")).toBe(jwtSecret);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  expect(readdirSync(dataDir)).toEqual(["jwt-secret"]);
  expect(read({ JWT_SECRET: "x".repeat(32) })).toMatchObject({ jwtSecret: "x".repeat(32), isSecretGiven: true });
});

test("all files of the service are readable by their owner only, whatever the umask and whatever they were before", () => {
  const umask = process.umask(0);
  try {
    const dir = join(scratch, "shared");
    mkdirSync(join(dir, "sqs"), { recursive: true, mode: 0o755 });
    const own = [
      "jwt-secret",
      "running.json",
      "service.log",
      "dynamodb.sqlite",
      "dynamodb.sqlite-wal",
      "sqs/fauxqs.db",
    ];
    for (const name of [...own, "notes.txt"]) writeFileSync(join(dir, name), "");
    protectFiles(dir);
    writeFileSync(join(dir, "created-later"), "");
    const modeOf = (name: string) => statSync(join(dir, name)).mode & 0o777;
    for (const name of [...own, "created-later"]) expect([name, modeOf(name)]).toEqual([name, 0o600]);
    expect(modeOf("sqs")).toBe(0o700);
    expect(modeOf("notes.txt")).toBe(0o666);
  } finally {
    process.umask(umask);
  }
});

test.each<[string, string, string | RegExp]>([
  ["PORT", "eighty", 'PORT must be a whole number from 0 to 65535, not "eighty".'],
  ["PORT", "65536", 'PORT must be a whole number from 0 to 65535, not "65536".'],
  ["SQS_PORT", "-1", 'SQS_PORT must be a whole number from 0 to 65535, not "-1".'],
  ["JWT_SECRET", "x".repeat(31), /^JWT_SECRET .*32 bytes/],
  ["DELIVERY_BATCH_SIZE", "0", 'DELIVERY_BATCH_SIZE must be a whole number from 1 to 10, not "0".'],
  ["DELIVERY_BATCH_SIZE", "11", 'DELIVERY_BATCH_SIZE must be a whole number from 1 to 10, not "11".'],
  ["DELIVERY_BATCH_SIZE", "2.5", 'DELIVERY_BATCH_SIZE must be a whole number from 1 to 10, not "2.5".'],
  ["RETRY_SCHEDULE", "5,soon", /^RETRY_SCHEDULE .*whole seconds/],
  ["LAST_USED_RESOLUTION_SECONDS", "1.5", /^LAST_USED_RESOLUTION_SECONDS .*whole seconds/],
  ["DISABLE_AFTER_SECONDS", "x", /^DISABLE_AFTER_SECONDS .*whole seconds/],
  ["JWT_MAX_LIFETIME_SECONDS", "x", /^JWT_MAX_LIFETIME_SECONDS .*whole seconds/],
  ["JWT_CLOCK_SKEW_SECONDS", "x", /^JWT_CLOCK_SKEW_SECONDS .*whole seconds/],
  ["WEBHOOK_ALLOW_CIDRS", "everything", /^WEBHOOK_ALLOW_CIDRS.*"everything"/],
  ["JWKS_URI", "https://idp.example.com/keys", /^JWKS_URI has no effect without JWKS_ISSUER\./],
  ["JWT_REQUIRED_CLAIMS", '{"is_anonymous":null}', /^JWT_REQUIRED_CLAIMS cannot be used\. .*It must have claims/],
  ["JWT_REQUIRED_CLAIMS", "email_verified", "JWT_REQUIRED_CLAIMS cannot be used. It is not JSON."],
  ["JWT_REQUIRES_ISSUED_AT", "yes", 'JWT_REQUIRES_ISSUED_AT must be true or false, not "yes"'],
  ["DNS_SERVERS", "dns.example.com", /^DNS_SERVERS must hold addresses such as .+, not "dns\.example\.com"\.$/],
  ["DNS_SERVERS", "127.0.0.1, 1.2.3", /^DNS_SERVERS .* not "1\.2\.3"/],
  ["DNS_SERVERS", "127.0.0.1:65536", /^DNS_SERVERS .* not "127\.0\.0\.1:65536"/],
  ["DNS_SERVERS", "127.0.0.1:", /^DNS_SERVERS .* not "127\.0\.0\.1:"/],
  ["JWKS_ISSUER", "notaurl", /^JWKS_URI.* must be an https URL/],
  ["AWS_ENDPOINT_URL_SQS", "localhost:4566", 'AWS_ENDPOINT_URL_SQS must be an http(s) URL, not "localhost:4566".'],
  ["AWS_ENDPOINT_URL_DYNAMODB", "http://", 'AWS_ENDPOINT_URL_DYNAMODB must be an http(s) URL, not "http://".'],
  ["IMPORTED_KEYS", '[{"prefix":"svc_","hash":"sha256"}]', /^IMPORTED_KEYS cannot be used\. .*0\.prefix must be/],
  ["IMPORTED_KEYS", '[{"prefix":"old_","hash":"hmac-sha256"}]', "IMPORTED_KEYS_PEPPER is not set"],
  ["CORS_ORIGINS", "https://a.example/path", /^CORS_ORIGINS must hold origins such as/],
])("%s=%s is one sentence that names the setting", (name, value, message) => {
  const start = () => {
    const settings = read({ [name]: value });
    process.env[name] = value;
    setFunctionDefaults(settings);
  };
  expect(start).toThrow(SettingError);
  expect(start).toThrow(message);
});

test.each([
  [undefined, "127.0.0.0/8,::1/128"],
  ["", ""],
  ["10.0.0.0/8", "10.0.0.0/8"],
])("WEBHOOK_ALLOW_CIDRS=%j becomes %j", (value, allowed) => {
  if (value === undefined) delete process.env.WEBHOOK_ALLOW_CIDRS;
  else process.env.WEBHOOK_ALLOW_CIDRS = value;
  setFunctionDefaults({ jwtSecret: "x".repeat(32) });
  expect(process.env.WEBHOOK_ALLOW_CIDRS).toBe(allowed);
});

test.each(["127.0.0.1", "127.0.0.1:1", "::1", "[::1]", "[::1]:65535", " 127.0.0.1 , [::1]:5353 ,", ""])(
  "DNS_SERVERS=%j is accepted, and the resolver of Node too accepts it",
  (value) => {
    process.env.DNS_SERVERS = value;
    setFunctionDefaults({ jwtSecret: "x".repeat(32) });
    expect(() => new Resolver().setServers(functionSettings.dnsServers())).not.toThrow();
  },
);

test("JWKS_ISSUER needs JWKS_AUDIENCE, and then JWKS_URI is accepted", () => {
  const start = () => setFunctionDefaults({ jwtSecret: "x".repeat(32) });
  process.env.JWKS_ISSUER = "https://idp.example.com";
  expect(start).toThrow(/^JWKS_AUDIENCE is not set\. .*any other application/);
  const others = { JWKS_URI: "https://idp.example.com/keys", JWKS_AUDIENCE: "api", JWKS_SHARES_USERS: "false" };
  Object.assign(process.env, others);
  expect(start).not.toThrow();
});

test("an empty value of any other setting means its default", () => {
  process.env.AWS_REGION = "";
  setFunctionDefaults({ jwtSecret: "x".repeat(32) });
  expect(process.env.AWS_REGION).toBe("us-east-1");
  expect(read({ PORT: "", JWT_SECRET: "" })).toMatchObject({ port: 3000, isSecretGiven: false });
});

describe("a data directory that cannot be used", () => {
  test.each([
    ["it is a file", "file", "EEXIST: file already exists, mkdir"],
    ["a part of its path is a file", "file/data", "ENOTDIR: not a directory, mkdir"],
    ["its folder is not writable", "read-only/data", "EACCES: permission denied, mkdir"],
  ])("is reported when %s", (_, name, reason) => {
    writeFileSync(join(scratch, "file"), "");
    mkdirSync(join(scratch, "read-only"), { recursive: true, mode: 0o500 });
    // Permissions do not stop root.
    if (name.startsWith("read-only") && process.getuid?.() === 0) return;
    const path = join(scratch, name);
    const read = () => readSettings({ DATA_DIR: path });
    expect(read).toThrow(`The data directory ${path} cannot be used: ${reason}`);
    expect(read).toThrow(/\. Set DATA_DIR to a folder that you can write to\.$/);
  });

  test("is reported when the path of its secret is a folder", () => {
    const path = join(scratch, "odd");
    mkdirSync(join(path, "jwt-secret"), { recursive: true });
    expect(() => readSettings({ DATA_DIR: path })).toThrow(/^The data directory .+\/odd cannot be used: EISDIR/);
  });

  test("is reported when its secret is too short", () => {
    const path = join(scratch, "short");
    mkdirSync(path);
    writeFileSync(join(path, "jwt-secret"), "x".repeat(31));
    const message = `${path}/jwt-secret does not hold a usable secret. Delete the file; the next start creates a new one.`;
    expect(() => readSettings({ DATA_DIR: path })).toThrow(new SettingError(message));
    writeFileSync(join(path, "jwt-secret"), "x".repeat(32));
    expect(readSettings({ DATA_DIR: path }).jwtSecret).toBe("x".repeat(32));
  });
});

describe("OIDC_ISSUERS", () => {
  const start = (value: string) => {
    process.env.OIDC_ISSUERS = value;
    return () => setFunctionDefaults({ jwtSecret: "x".repeat(32) });
  };
  const ci = {
    name: "ci",
    issuer: "http://127.0.0.1:4999",
    jwks_uri: "http://127.0.0.1:4999/jwks",
    audience: "deployments",
  };

  test("lets a local run accept an issuer on this machine", () => {
    expect(start(JSON.stringify([ci]))).not.toThrow();
  });

  test.each([
    ["github", "OIDC_ISSUERS cannot be used. It is not JSON. Example: [{"],
    [
      JSON.stringify([{ ...ci, audience: undefined }]),
      "OIDC_ISSUERS cannot be used. The input is not valid: 0.audience is required: tokens for other services would be accepted.",
    ],
    [JSON.stringify([{ ...ci, issuer: "http://ci.example" }]), "0.issuer must be an https URL, or http"],
  ])("with the value %s stops the start", (value, message) => {
    expect(start(value)).toThrow(SettingError);
    expect(start(value)).toThrow(message);
  });

  test.each(["JWKS_ISSUER", "JWT_ISSUER"])("with the issuer of %s stops the start", (name) => {
    Object.assign(process.env, { [name]: "https://id.example", JWKS_AUDIENCE: "api", JWKS_SHARES_USERS: "true" });
    const value = JSON.stringify([{ ...ci, issuer: "https://id.example" }]);
    expect(start(value)).toThrow("OIDC_ISSUERS and JWKS_ISSUER or JWT_ISSUER both name https://id.example.");
    const inAnotherSpelling = JSON.stringify([{ ...ci, issuer: "https://ID.example/" }]);
    expect(start(inAnotherSpelling)).toThrow(
      "OIDC_ISSUERS and JWKS_ISSUER or JWT_ISSUER both name https://ID.example/",
    );
  });
});
