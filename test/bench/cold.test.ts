import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import { signedHeaders } from "../../bench/cold/floor.ts";
import { cold } from "../../bench/cold.ts";
import { endpointRows } from "../../functions/manifest/function-rows.ts";
import { workers } from "../../functions/manifest/workers.ts";

test("every bundle starts and returns the correct result, and each that calls DynamoDB has a row", async () => {
  const { tables, targets } = await cold({ forMs: 0 });
  const names = tables[0]?.rows.map(([name]) => String(name));
  const silent = ["api-keys/get-current"];
  const files = [...endpointRows, ...workers].map(({ file }) => file).filter((file) => !silent.includes(file));
  expect(names?.toSorted()).toEqual(["floor", ...files].toSorted());
  expect(targets.map(({ name }) => name.replace(/\(.*\)/, "(…)"))).toEqual([
    `largest of ${files.length} bundles (…) / floor`,
    "authorizer / floor",
    "bundles over the bound",
  ]);
  for (const { value } of targets) expect(Number.isFinite(value)).toBe(true);
});

test("the floor computes the same signature as the SDK", async () => {
  class Sha256 {
    readonly #hash;
    constructor(secret?: string | Uint8Array) {
      this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret);
    }
    update(data: string | Uint8Array) {
      this.#hash.update(data);
    }
    async digest() {
      return new Uint8Array(this.#hash.digest());
    }
  }
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  const at = new Date("2026-01-02T03:04:05.678Z");
  const body = '{"TableName":"t"}';
  const signer = new SignatureV4({
    service: "dynamodb",
    region: "eu-central-1",
    credentials,
    sha256: Sha256 as never,
    applyChecksum: false,
  });
  const headers = signedHeaders(
    "127.0.0.1:8000",
    "DynamoDB_20120810.GetItem",
    body,
    { ...credentials, region: "eu-central-1" },
    at,
  );
  const { authorization: ours, ...unsigned } = headers;
  const signed = await signer.sign(
    {
      method: "POST",
      protocol: "http:",
      hostname: "127.0.0.1",
      port: 8000,
      path: "/",
      query: {},
      headers: unsigned,
      body,
    },
    { signingDate: at },
  );
  expect(ours).toBe(signed.headers.authorization);
});
