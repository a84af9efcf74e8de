import { createHash } from "node:crypto";
import { parse } from "../../../../functions/foundation/schema/input.ts";
import {
  API_KEY_RANDOM_BYTES,
  type ApiKey,
  createApiKey,
  endOf,
  hashApiKey,
  importApiKey,
  isExpired,
  isLastUsedStale,
  secretsAfterRoll,
  toCreated,
  toListItem,
} from "../../../../functions/identity/api-keys/api-key.ts";
import { apiKeyInput } from "../../../../functions/identity/api-keys/api-key-input.ts";
import { isApiKey } from "../../../../functions/identity/api-keys/key-format.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const random = Buffer.from(Array.from({ length: API_KEY_RANDOM_BYTES }, (_, index) => index));

test("createApiKey returns the random bytes and their CRC-32 in hex, and an item with the hash and the first 12 characters", () => {
  const { apiKey, key } = createApiKey("user-1", { name: "ci" }, now, random);
  // python3 -c 'import zlib; print("%08x" % zlib.crc32(b"svc_0001…1a1b"))'
  expect(key).toBe("svc_000102030405060708090a0b0c0d0e0f101112131415161718191a1bf57394a2");
  expect(apiKey).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
    user_id: "user-1",
    name: "ci",
    key_prefix: "svc_00010203",
    key_hash: createHash("sha256").update(key, "utf8").digest("hex"),
    created_at: "2026-03-01T12:00:00.000Z",
  });
});

test("secretsAfterRoll keeps the three newest secrets whose overlap is not over, and removes all others", () => {
  const [past, later, latest] = [now, new Date(now.getTime() + 1), new Date(now.getTime() + 60_000)];
  const secret = (key_hash: string, ends: Date) => ({ key_hash, ends_at: ends.toISOString() });
  const previous = [secret("over", past), secret("one", later), secret("two", latest), secret("three", latest)];
  const entry = { user_id: "user-1", id: "id", key_hash: "current", previous };
  expect(secretsAfterRoll(entry, now, 60)).toEqual({
    kept: [secret("current", latest), secret("one", later), secret("two", latest)],
    removed: ["over", "three"],
  });
});

test("the id of a key does not depend on its secret bytes", () => {
  const otherSecret = Buffer.concat([Buffer.alloc(28, 0xff), random.subarray(28)]);
  const idOf = (bytes: Buffer) => createApiKey("user-1", { name: "ci" }, now, bytes).apiKey.id;
  expect(idOf(otherSecret)).toBe(idOf(random));
});

test("ids sort by the time of creation", () => {
  const idAt = (millis: number, byte: number) =>
    createApiKey("user-1", { name: "ci" }, new Date(millis), Buffer.alloc(API_KEY_RANDOM_BYTES, byte)).apiKey.id;
  const ids = [idAt(1_000, 0xff), idAt(1_001, 0), idAt(1_700_000_000_000, 0x80), idAt(1_700_000_000_001, 0)];
  expect(ids.toSorted()).toEqual(ids);
});

test("hashApiKey is SHA-256 over the whole key including the prefix", () => {
  // printf svc_0000…(64 zeros) | sha256sum
  expect(hashApiKey(`svc_${"0".repeat(64)}`)).toBe("4a4474e0e18733444c084e65ed92210c5f93fe87a51e68c1165be0aed5cfabe9");
});

const hex = `${"0123456789abcdef".repeat(4).slice(0, 56)}39d55bbe`;

test.each([
  ["svc_, 56 hex characters and their CRC-32", `svc_${hex}`, true],
  ["a CRC-32 that starts with zeros", "svc_0000000000000000000000000000000000000000000000000000000200d96f35", true],
  ["64 hex characters without a checksum", `svc_${"0123456789abcdef".repeat(4)}`, false],
  ["two swapped characters", `svc_10${hex.slice(2)}`, false],
  ["the checksum in upper case", `svc_${hex.slice(0, 56)}39D55BBE`, false],
  ["the checksum of the key without its prefix", `svc_${"0".repeat(56)}cb612bfd`, false],
  ["upper case", `svc_${hex.toUpperCase()}`, false],
  ["an upper case prefix", `SVC_${hex}`, false],
  ["one character too few", `svc_${hex.slice(1)}`, false],
  ["one character too many, with their CRC-32", `svc_${"0".repeat(57)}905ea0ef`, false],
  ["a character that is not hex", `svc_${hex.slice(1)}g`, false],
  ["a trailing newline", `svc_${hex}\n`, false],
  ["a leading space", ` svc_${hex}`, false],
  ["digits of another script", `svc_${hex.slice(1)}\u0661`, false],
  ["the prefix of partner keys", `svcp_${hex}`, false],
  ["no prefix", hex, false],
  ["an empty string", "", false],
])("isApiKey for %s", (_title, token, expected) => {
  expect(isApiKey(token)).toBe(expected);
});

test.each([
  ["never used", undefined, 60, true],
  ["used now", "2026-03-01T12:00:00.000Z", 60, false],
  ["used 59.999 s ago", "2026-03-01T11:59:00.001Z", 60, false],
  ["used 60 s ago", "2026-03-01T11:59:00.000Z", 60, true],
  ["used in the future, due to clock skew", "2026-03-01T12:00:01.000Z", 60, false],
  ["used now, at a resolution of zero", "2026-03-01T12:00:00.000Z", 0, true],
  ["used 59 s ago, at a resolution of an hour", "2026-03-01T11:59:01.000Z", 3600, false],
])("isLastUsedStale for a key %s", (_title, last_used_at, resolution, expected) => {
  const { apiKey } = createApiKey("user-1", { name: "ci" }, now, random);
  const used: ApiKey = last_used_at === undefined ? apiKey : { ...apiKey, last_used_at };
  expect(isLastUsedStale(used, now, resolution)).toBe(expected);
});

describe("a key with limits", () => {
  const project = "0192f5a0-0000-7000-8000-000000000001";
  const create = (input: object) => createApiKey("user-1", parse(apiKeyInput(), { name: "ci", ...input }), now, random);

  test("stores and returns its permissions, projects and end", () => {
    const limits = {
      permissions: ["webhooks:read", "deliveries:write"],
      project_ids: [project],
      expires_at: "2027-03-01T12:00:00.000Z",
    };
    const { apiKey, key } = create({ ...limits, expires_at: "2027-03-01T13:00:00+01:00" });
    expect(apiKey).toMatchObject(limits);
    expect(toListItem(apiKey)).toMatchObject(limits);
    expect(toCreated(apiKey, key)).toMatchObject(limits);
  });

  test("may end exactly 366 days from now", () => {
    const { apiKey } = create({ expires_at: "2027-03-02T12:00:00Z" });
    expect(apiKey.expires_at).toBe("2027-03-02T12:00:00.000Z");
  });

  test("that is replaced ends with its overlap, or with its own end if that is earlier", () => {
    const [soon, later] = ["2026-03-01T13:00:00.000Z", "2026-03-02T12:00:00.000Z"];
    const { apiKey } = create({});
    expect(endOf({ ...apiKey, expires_at: later, ends_at: soon })).toBe(soon);
    expect(endOf({ ...apiKey, expires_at: soon, ends_at: later })).toBe(soon);
  });

  test("keeps each value once, and ids in lower case", () => {
    const { apiKey } = create({
      permissions: ["keys:read", "keys:read"],
      project_ids: [project, project.toUpperCase()],
    });
    expect(apiKey).toMatchObject({ permissions: ["keys:read"], project_ids: [project] });
  });

  test("without limits has none of the fields, in the item and in responses", () => {
    const { apiKey, key } = create({});
    for (const fields of [apiKey, toListItem(apiKey), toCreated(apiKey, key)])
      expect(Object.keys(fields).join()).not.toMatch(/permissions|project_ids|expires_at/);
  });

  test.each<[string, object, string, string]>([
    ["no permission", { permissions: [] }, "permissions", "must not be empty"],
    [
      "an unknown permission",
      { permissions: ["admin"] },
      "permissions.0",
      expect.stringMatching(/^must be one of proj/),
    ],
    ["permissions as text", { permissions: "keys:read" }, "permissions", "must be an array"],
    ["no project", { project_ids: [] }, "project_ids", "must not be empty"],
    ["a project that is no UUID", { project_ids: ["shop"] }, "project_ids.0", "must be a UUID"],
    ["21 projects", { project_ids: Array(21).fill(project) }, "project_ids", "must have at most 20 entries"],
    ["an end in the past", { expires_at: "2026-03-01T11:59:59Z" }, "expires_at", "must be in the future"],
    ["an end now", { expires_at: "2026-03-01T12:00:00Z" }, "expires_at", "must be in the future"],
    [
      "an end after 366 days",
      { expires_at: "2027-03-02T12:00:01Z" },
      "expires_at",
      "must be at most 366 days from now",
    ],
    ["an end as a number", { expires_at: 1_800_000_000 }, "expires_at", "must be an ISO 8601 time"],
    ["null as end", { expires_at: null }, "expires_at", "must be an ISO 8601 time"],
  ])("is rejected with %s", (_title, input, path, message) => {
    expect(() => create(input)).toThrow(
      expect.objectContaining({ code: "validation_error", details: [{ path, message }] }),
    );
  });

  test.each([
    ["a millisecond before its end", "2026-03-01T12:00:00.001Z", false],
    ["at its end", "2026-03-01T12:00:00.000Z", true],
    ["without an end", undefined, false],
  ])("isExpired %s", (_title, expires_at, expected) => {
    const { apiKey } = create({});
    expect(isExpired(expires_at === undefined ? apiKey : { ...apiKey, expires_at }, now)).toBe(expected);
  });
});

const family = "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}";

test.each([
  ["one character", "x"],
  ["100 characters", "x".repeat(100)],
  ["100 emoji, which are 200 UTF-16 units", "\u{1F680}".repeat(100)],
  ["an emoji that is a joined sequence", family],
  ["right-to-left script", "مفتاح"],
  ["Chinese", "部署密钥"],
  ["a combining accent", "cle\u0301"],
  ["markup", "<script>alert('x')</script> \"\\ $x"],
])("accepts a name that is %s, unchanged", (_title, name) => {
  expect(parse(apiKeyInput(), { name })).toEqual({ name });
});

const unseen = (code: string) => `must not contain control or invisible characters: it has ${code}`;

test.each([
  ["missing", undefined, "is required"],
  ["null", null, "must be a string"],
  ["a number", 1, "must be a string"],
  ["an array", ["ci"], "must be a string"],
  ["empty", "", "must not be blank"],
  ["only spaces", "   ", "must not be blank"],
  ["only no-break and ideographic spaces", "\u00a0\u3000", "must not be blank"],
  ["only invisible characters", "\u200b\u2060\u200f\u3164\u{e0041}", unseen("\\u200b")],
  ["101 characters", "x".repeat(101), "must be at most 100 characters long"],
  ["101 emoji", "\u{1F680}".repeat(101), "must be at most 100 characters long"],
  ["text with NUL", "a\0b", unseen("\\u0000")],
  ["text with a newline", "a\nb", unseen("\\u000a")],
  ["text with a trailing tab", "a\t", unseen("\\u0009")],
  ["text with an escape sequence", "a\u001b[31mb", unseen("\\u001b")],
  ["text with DEL", "a\u007fb", unseen("\\u007f")],
  ["text with a C1 control character", "a\u0085b", unseen("\\u0085")],
  ["text with a line separator", "a\u2028b", unseen("\\u2028")],
  ["text with a paragraph separator", "a\u2029b", unseen("\\u2029")],
  ["a lone high surrogate", "a\ud83d", "must be valid Unicode"],
  ["a lone low surrogate", "\ude80a", "must be valid Unicode"],
  ["surrogates in the wrong order", "\ude80\ud83d", "must be valid Unicode"],
  ...[..."\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"].map((mark): [string, string, string] => [
    `U+${mark.codePointAt(0)?.toString(16)}, which changes the direction of text`,
    `a${mark}b`,
    unseen(`\\u${mark.codePointAt(0)?.toString(16)}`),
  ]),
])("rejects a name that is %s", (_title, name, message) => {
  expect(() => parse(apiKeyInput(), { name })).toThrow(
    expect.objectContaining({ code: "validation_error", details: [{ path: "name", message }] }),
  );
});

test("an imported key was created from 1970 until now, and expires later", () => {
  const given = { hash: "00".repeat(32), user_id: "alice", name: "ci", key_prefix: "acme_1", permissions: undefined };
  const later = new Date(now.getTime() + 1);
  const key = importApiKey({ ...given, created_at: now, expires_at: later }, now, random);
  expect([key.created_at, key.expires_at]).toEqual([now.toISOString(), later.toISOString()]);
  const first = importApiKey({ ...given, created_at: new Date(0), expires_at: undefined }, now, random);
  expect(first.created_at).toBe("1970-01-01T00:00:00.000Z");
  const rejected = expect.objectContaining({ code: "validation_error" });
  expect(() => importApiKey({ ...given, created_at: undefined, expires_at: now }, now, random)).toThrow(rejected);
  expect(() => importApiKey({ ...given, created_at: later, expires_at: undefined }, now, random)).toThrow(rejected);
});
