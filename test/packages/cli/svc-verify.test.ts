import { createHash, createHmac, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signatureHeaders } from "../../../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../../../functions/webhooks/webhook/webhook.ts";
import { diagnose, type Verdict } from "../../../packages/cli/src/verify/diagnose.ts";
import { svc } from "../../support/svc.ts";
import { svcHere } from "../../support/svc-here.ts";
import { vectors } from "../../support/vectors.ts";

/* `svc verify` with deliveries that the service signed, and with every known mistake. */

const secret = generateSecret(Buffer.alloc(32, 0xa7));
const oldSecret = generateSecret(Buffer.alloc(32, 0x0d));
const at = new Date("2026-11-21T04:04:29Z");
const deliveryId = randomUUID();
const event = {
  event: "deploy.succeeded",
  project_id: "01930000-0000-7000-8000-00000000d301",
  deployment_id: "5bd28e08-2931-4f2d-8a19-8991a76b91d8",
  timestamp: "2026-11-21T04:04:29.027Z",
  data: { url: "https://shop.example.com/?a=1&b=<2>", status: "running", note: "Grüße, 世界 🚀" },
};
const body = JSON.stringify(event);

type Headers = Record<string, string>;

const signed = (text = body, by = secret, previous: string[] = []): Headers => {
  const headers = signatureHeaders({ deliveryId, at, body: text }, by, previous);
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
};

function verify(headers: Headers, given: string | Buffer = body, secrets = [secret], now = at): Verdict[] {
  const request = { headers: new Map(Object.entries(headers)), body: Buffer.from(given) };
  return diagnose(request, secrets, { now, toleranceSeconds: 300 });
}

const codes = (verdicts: Verdict[]) =>
  Object.fromEntries(
    verdicts.map(({ header, isValid, findings }) => [header, [isValid, ...findings.map(({ code }) => code)]]),
  );
const both = (code: string) => ({ "X-Service-Signature": [false, code], "webhook-signature": [false, code] });

test("an unchanged delivery is valid in both schemes", () => {
  expect(verify(signed())).toEqual([
    { header: "X-Service-Signature", isValid: true, secretNumber: 1, findings: [] },
    { header: "webhook-signature", isValid: true, secretNumber: 1, findings: [] },
  ]);
});

test("reports which of several secrets signed", () => {
  const verdicts = verify(signed(), body, [oldSecret, secret]);
  expect(verdicts.map(({ isValid, secretNumber }) => ({ isValid, secretNumber }))).toEqual([
    { isValid: true, secretNumber: 2 },
    { isValid: true, secretNumber: 2 },
  ]);
});

describe("a changed body", () => {
  const escapeUnicode = (text: string) =>
    text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const escaped = escapeUnicode(body);
  test.each<[string, string, string | Buffer, string]>([
    ["a line break was added", body, `${body}\n`, "newline_added"],
    ["a CR LF was added", body, `${body}\r\n`, "newline_added"],
    ["white space was added around it", body, `  ${body} \n\n`, "body_reserialised"],
    [
      "it was serialized by Go",
      body,
      body.replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026"),
      "body_reserialised",
    ],
    ["a byte order mark was added", body, `\ufeff${body}`, "body_reserialised"],
    ["it was signed as a JSON string", JSON.stringify(body), body, "body_stringified_twice"],
    ["it was encoded as base64", body, Buffer.from(body).toString("base64"), "body_base64"],
    ["it is empty", body, "", "body_empty"],
    ["it was signed when it was empty", "", body, "body_not_read"],
    ["it was signed as the empty object of a body parser", "{}", body, "body_not_read"],
    ["it was signed as the text of a parsed body", "[object Object]", body, "body_not_text"],
  ])("is explained when %s", (_, asSigned, given, code) => {
    expect(codes(verify(signed(asSigned), given))).toEqual(both(code));
  });

  const spaced = body.replaceAll('":', '": ').replaceAll(',"', ', "');
  test.each<[string, string, string?]>([
    ["without white space", body, JSON.stringify(event, null, 2)],
    ["as Python writes it: with spaces after , and :, and with non-ASCII characters escaped", escapeUnicode(spaced)],
    ["as PHP writes it: with slashes and non-ASCII characters escaped", escaped.replaceAll("/", "\\/")],
    [
      "as Go writes it: with <, > and & escaped",
      body.replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026"),
    ],
    ["with numbers rounded to double precision", '{"n":9007199254740992}', '{"n":9007199254740993}'],
  ])("is explained with the format in which it was signed: %s", (format, asSigned, given = body) => {
    const verdicts = verify(signed(asSigned), given);
    const message = `The body was parsed and serialized again: the signature matches the same JSON ${format}.`;
    expect(verdicts.map(({ findings }) => findings)).toMatchObject([[{ message }], [{ message }]]);
  });

  test("is reported by its length when it differs from Content-Length", () => {
    const headers = { ...signed(), "content-length": String(Buffer.byteLength(body)) };
    expect(codes(verify(headers, body.replace("running", "stopped!")))).toEqual(both("body_length"));
    expect(codes(verify(headers, body.replace("running", "stopped")))).toEqual(both("unexplained"));
  });
});

describe("a signature that was computed incorrectly", () => {
  const mac = (key: string | Buffer, content: string, algorithm = "sha256") =>
    createHmac(algorithm, key).update(content).digest();
  const part = secret.slice("whsec_".length);
  const timestamp = String(at.getTime() / 1000);
  const content = `${deliveryId}.${timestamp}.${body}`;
  const right = mac(secret, body);
  const standardKey = Buffer.from(part, "base64");
  const rightStandard = mac(standardKey, content);

  test.each<[string, string, string]>([
    ["keyed without whsec_", `sha256=${mac(part, body).toString("hex")}`, "wrong_key"],
    ["keyed with the part decoded as base64", `sha256=${mac(standardKey, body).toString("hex")}`, "wrong_key"],
    [
      "keyed with the part decoded as hex",
      `sha256=${mac(Buffer.from(part, "hex"), body).toString("hex")}`,
      "wrong_key",
    ],
    ["over id, time and body", `sha256=${mac(secret, content).toString("hex")}`, "wrong_content"],
    ["over time and body", `sha256=${mac(secret, `${timestamp}.${body}`).toString("hex")}`, "wrong_content"],
    ["in upper case", `sha256=${right.toString("hex").toUpperCase()}`, "upper_case_hex"],
    ["without sha256=", right.toString("hex"), "prefix_missing"],
    ["in base64", `sha256=${right.toString("base64")}`, "wrong_encoding"],
    ["with SHA-1", `sha256=${mac(secret, body, "sha1").toString("hex")}`, "wrong_algorithm"],
    ["as a plain hash of the body", `sha256=${createHash("sha256").update(body).digest("hex")}`, "no_hmac"],
    ["with secret and body swapped", `sha256=${mac(body, secret).toString("hex")}`, "arguments_swapped"],
    ["for the other header", `v1,${rightStandard.toString("base64")}`, "wrong_header"],
    ["with another secret", `sha256=${mac(oldSecret, body).toString("hex")}`, "headers_changed"],
  ])("X-Service-Signature is explained when it is %s", (_, value, code) => {
    const headers = { ...signed(), "x-service-signature": value };
    expect(codes(verify(headers))).toEqual({ "X-Service-Signature": [false, code], "webhook-signature": [true] });
  });

  test.each(["webhook-id", "webhook-timestamp"])("webhook-signature is explained when %s was changed", (name) => {
    const changed = { ...signed(), [name]: "1763700000" };
    expect(codes(verify(changed))["webhook-signature"]).toEqual([false, "headers_changed"]);
  });

  test.each<[string, string, string]>([
    ["keyed with the whole secret as text", `v1,${mac(secret, content).toString("base64")}`, "wrong_key"],
    ["keyed with the part as text", `v1,${mac(part, content).toString("base64")}`, "wrong_key"],
    [
      "keyed with the part decoded as hex",
      `v1,${mac(Buffer.from(part, "hex"), content).toString("base64")}`,
      "wrong_key",
    ],
    ["over the body alone", `v1,${mac(standardKey, body).toString("base64")}`, "wrong_content"],
    ["over time and body", `v1,${mac(standardKey, `${timestamp}.${body}`).toString("base64")}`, "wrong_content"],
    ["over id and body", `v1,${mac(standardKey, `${deliveryId}.${body}`).toString("base64")}`, "wrong_content"],
    ["without its version", rightStandard.toString("base64"), "prefix_missing"],
    ["in hex", `v1,${rightStandard.toString("hex")}`, "wrong_encoding"],
    ["for the other header", `sha256=${right.toString("hex")}`, "wrong_header"],
  ])("webhook-signature is explained when it is %s", (_, value, code) => {
    const headers = { ...signed(), "webhook-signature": value };
    expect(codes(verify(headers))).toEqual({ "X-Service-Signature": [true], "webhook-signature": [false, code] });
  });

  test("is not explained when two mistakes were made", () => {
    const value = `sha256=${mac(part, body).toString("base64")}`;
    expect(codes(verify({ "x-service-signature": value }))).toEqual({ "X-Service-Signature": [false, "unexplained"] });
  });

  test("is explained when it is the last of the three that a rotation has", () => {
    const value = `v1,${"A".repeat(43)}= v1,${"B".repeat(43)}= v1,${rightStandard.toString("hex")}`;
    const headers = { ...signed(), "webhook-signature": value };
    expect(codes(verify(headers))).toMatchObject({ "webhook-signature": [false, "wrong_encoding"] });
  });

  test("is invalid with a timestamp that is not a number of whole seconds, although it is correct", () => {
    const value = `v1,${mac(standardKey, `${deliveryId}.${timestamp}.5.${body}`).toString("base64")}`;
    const headers = { ...signed(), "webhook-timestamp": `${timestamp}.5`, "webhook-signature": value };
    expect(codes(verify(headers))).toMatchObject({ "webhook-signature": [false, "timestamp_invalid"] });
  });
});

describe("a wrong secret", () => {
  const serviceCodes = (given: string) =>
    codes(verify({ "x-service-signature": signed()["x-service-signature"] ?? "" }, body, [given]));
  test.each([
    ["is surrounded by white space", ` ${secret}\n`, "secret_whitespace"],
    ["is enclosed in quotes", `"${secret}"`, "secret_quoted"],
    ["lacks whsec_", secret.slice(6), "secret_without_prefix"],
    ["is in upper case", secret.toUpperCase(), "secret_incomplete"],
    ["is truncated", secret.slice(0, 40), "secret_incomplete"],
    ["is an API key", `svc_${"0".repeat(64)}`, "secret_is_api_key"],
    ["is that of another webhook", oldSecret, "unexplained"],
  ])("is explained when it %s", (_, given, code) => {
    expect(serviceCodes(given)).toEqual({ "X-Service-Signature": [false, code] });
  });

  test("is reported as old, and valid, during the overlap of a rotation", () => {
    expect(codes(verify(signed(body, secret, [oldSecret]), body, [secret.toUpperCase(), oldSecret]))).toEqual({
      "X-Service-Signature": [true, "old_secret"],
      "webhook-signature": [true],
    });
  });
});

describe("the inputs of a signature", () => {
  const inSeconds = (seconds: number) => new Date(at.getTime() + seconds * 1000);

  test("a stale or future timestamp makes a correct signature invalid", () => {
    for (const seconds of [300.9, -300]) {
      const verdicts = verify(signed(), body, [secret], inSeconds(seconds));
      expect(codes(verdicts)).toMatchObject({ "webhook-signature": [true] });
    }
    expect(codes(verify(signed(), body, [secret], inSeconds(301)))).toEqual({
      "X-Service-Signature": [true],
      "webhook-signature": [false, "timestamp_stale"],
    });
    expect(codes(verify(signed(), body, [secret], inSeconds(-300.1)))).toMatchObject({
      "webhook-signature": [false, "timestamp_future"],
    });
  });

  test("missing headers are reported", () => {
    const { "webhook-id": _, ...withoutId } = signed();
    expect(codes(verify(withoutId))).toMatchObject({ "webhook-signature": [false, "header_missing"] });
    const [only] = verify({ "webhook-signature": signed()["webhook-signature"] ?? "" });
    expect(only?.findings[0]?.message).toContain("webhook-id and webhook-timestamp, which are missing.");
    const [, one] = verify(withoutId);
    expect(one?.findings[0]?.message).toContain("webhook-id, which is missing.");
    expect(codes(verify({ "content-type": "application/json" }))).toEqual({
      "X-Service-Signature": [false, "signature_missing"],
    });
  });

  test("no verdict contains a secret or a correct signature", () => {
    const output = JSON.stringify([verify(signed(), `${body}\n`), verify(signed(body, oldSecret)), verify({})]);
    expect(output).not.toContain(secret.slice(6, 20));
    expect(output).not.toMatch(/[0-9a-f]{40}/);
  });
});

describe("svc verify", () => {
  const folder = mkdtempSync(join(tmpdir(), "verify-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const lines = Object.entries(signed()).map(([name, value]) => `${name}: ${value}`);
  const headers = file("headers.txt", `POST /hook HTTP/1.1\r\nHost: example.com\r\n${lines.join("\r\n")}\r\n`);
  const env = { SVC_WEBHOOK_SECRET: secret };
  const atArrival = ["--at", at.toISOString()];

  test("exits with 0 for a valid delivery: body on stdin, headers in a file, secret in the environment", async () => {
    const { code, stdout } = await svc(["verify", "--headers", headers, ...atArrival], { env, input: body });
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "X-Service-Signature  ✔ valid\nwebhook-signature    ✔ valid\n",
    });
  });

  test("exits with 1 for an invalid delivery, with the mistake and the fix", async () => {
    const args = ["verify", "--headers", headers, ...atArrival, "--body", file("body.json", `${body}\n`)];
    const { code, stdout } = await svcHere(args, { env });
    expect({ code, stdout }).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/✘ invalid\n {4}The body ends with a line break/),
    });
    const result = JSON.parse((await svcHere([...args, "--json"], { env })).stdout);
    expect(result).toMatchObject({
      verified: false,
      signatures: [{ holds: false, remarks: [{ code: "newline_added" }] }, {}],
    });
  });

  test("a saved delivery is stale without --at or --tolerance", async () => {
    const { code, stdout } = await svcHere(["verify", "--headers", headers], { env, input: body });
    expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringContaining("--at <time>") });
    expect(
      (await svcHere(["verify", "--headers", headers, "--tolerance", "999999999"], { env, input: body })).code,
    ).toBe(0);
  });

  test("accepts a single signature, several secrets, and secrets from a file, instead of those in the environment", async () => {
    const signature = ["--signature", signed()["x-service-signature"] ?? ""];
    const options = { env: { SVC_WEBHOOK_SECRET: oldSecret }, input: body };
    const two = await svcHere(["verify", ...signature, "--secret", oldSecret, "--secret", secret], options);
    expect(two).toMatchObject({ code: 0, stdout: expect.stringContaining("valid, secret 2 of 2") });
    const fromFile = ["--secret-file", file("secrets.txt", `${secret}\n`)];
    expect((await svcHere(["verify", ...signature, ...fromFile], options)).code).toBe(0);
  });

  test("accepts headers as options, as JSON, as curl shows them, and an event of API Gateway", async () => {
    const one = lines.flatMap((line) => ["--header", line]);
    expect((await svcHere(["verify", ...one, ...atArrival, "--body", "-"], { env, input: body })).code).toBe(0);
    const asJson = file("headers.json", JSON.stringify(signed()));
    const asTrace = file("trace.txt", lines.map((line) => `> ${line}`).join("\r\n"));
    const inSeconds = ["--at", String(at.getTime() / 1000)];
    for (const path of [asJson, asTrace])
      expect((await svcHere(["verify", "--headers", path, ...inSeconds], { env, input: body })).code).toBe(0);
    const forged = { ...signed(), "x-service-signature": "sha256=00" };
    const gateway = { headers: forged, body: Buffer.from(body).toString("base64"), isBase64Encoded: true };
    const delivery = file("event.json", JSON.stringify(gateway));
    expect((await svcHere(["verify", "--delivery", delivery, ...one, ...atArrival], { env })).code).toBe(0);
  });

  test.each<[string, string[], string]>([
    ["no headers", ["verify"], "No headers given"],
    ["an invalid header", ["verify", "--header", "sha256"], 'must have the form "Name: value"'],
    ["no secret", ["verify", "--signature", "sha256=00"], "No signing secret given"],
    ["a missing file", ["verify", "--headers", "/nowhere.txt"], "Could not read /nowhere.txt (ENOENT)"],
    ["an invalid time", ["verify", "--headers", headers, "--at", "noon"], "--at must be"],
    ["an invalid tolerance", ["verify", "--headers", headers, "--tolerance", "-5"], "--tolerance must be"],
  ])("exits with 2 and the reason for %s", async (_, args, message) => {
    expect(await svcHere(args, { input: body })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(message),
    });
  });
});

test.each(vectors)(
  "agrees with the published vector: $name",
  async ({ scheme, secrets, body, headers, now, valid }) => {
    const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const header = scheme === "standard" ? "webhook-signature" : "X-Service-Signature";
    const verdicts = verify(named, body, secrets, new Date(now * 1000));
    const verdict = verdicts.find((each) => each.header === header);
    expect(verdict?.isValid ?? false).toBe(valid);
    if (verdict && !valid) expect(verdict.findings).not.toEqual([]);
  },
);
