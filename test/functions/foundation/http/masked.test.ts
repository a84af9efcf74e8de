import { createHash } from "node:crypto";
import { isMaskedUrl, withMaskedUrls } from "../../../../functions/foundation/http/masked.ts";
import { deliveryHeaders } from "../../../../functions/webhooks/receiver/delivery-headers.ts";
import { withoutSent } from "../../../../functions/webhooks/receiver/without-sent.ts";

const url = "https://hooks.example.com/services/T000/B01/SECRETTOKEN?key=v4lue-of-key";
const hex = (text: string) => createHash("sha256").update(text).digest("hex");
const secrets = [`whsec_${hex("current")}`, `whsec_${hex("previous")}`, "imported secret, any text"] as const;
const legacy = { name: "X-Hub-Signature", until: "2999-01-01" };
const headers = deliveryHeaders(
  { id: "01a1", event: "deploy.failed", body: "{}", sequence: "1" },
  secrets,
  new Date(),
  { legacy },
);
const service = headers["X-Service-Signature"] ?? "";
const standard = headers["webhook-signature"]?.split(" ")[0] ?? "";
const mac = service.slice("sha256=".length);
const base64 = standard.slice("v1,".length);

const failed = { durationMs: 1, statusCode: 500, errorCode: "http_status" as const };
const shown = (excerpt: string) => withoutSent({ ...failed, excerpt }, url, headers, secrets).excerpt ?? "";
const encoded = (text: string, encoding: BufferEncoding) => Buffer.from(text).toString(encoding);

/** What a receiver may print. Each has one of the hidden values. */
const echoes: [name: string, echo: string][] = [
  ["all headers as JSON", JSON.stringify(headers)],
  ["all headers as lines", Object.entries(headers).flat().join(": ")],
  ["X-Service-Signature", service],
  ["its value alone, in upper case", mac.toUpperCase()],
  ["webhook-signature", headers["webhook-signature"] ?? ""],
  ["X-Service-Signature-Previous", headers["X-Service-Signature-Previous"] ?? ""],
  ["webhook-signature in lower case", standard.toLowerCase()],
  ["webhook-signature after a letter with a longer lower case, and an emoji", `İ🚀 ${standard}`],
  ["webhook-signature in base64url", base64.replaceAll("+", "-").replaceAll("/", "_").replace("=", "")],
  ["X-Service-Signature as bytes in base64", Buffer.from(mac, "hex").toString("base64")],
  ["webhook-signature as bytes in hex", Buffer.from(base64, "base64").toString("hex")],
  ["webhook-signature in a URL", encodeURIComponent(standard)],
  ["webhook-signature in HTML", standard.replaceAll("+", "&#43;").replaceAll("/", "&#x2F;").replace("=", "&#x3D;")],
  ["its value in groups of eight", mac.replaceAll(/.{8}/g, "$& ")],
  ["its value as a hex dump with colons", mac.toUpperCase().replaceAll(/..(?!$)/g, "$&:")],
  ["its value as a hex dump with hyphens", mac.toUpperCase().replaceAll(/..(?!$)/g, "$&-")],
  ["its value as bytes of C", mac.replaceAll(/../g, "0x$&, ")],
  ["its value as escaped bytes", mac.replaceAll(/../g, "\\x$&")],
  ["its characters as JSON", JSON.stringify([...mac])],
  ["its characters as text", [...mac].join("\n")],
  ["its bytes as JSON", JSON.stringify(Buffer.from(mac, "hex"))],
  ["the bytes of its characters as JSON", JSON.stringify(Buffer.from(mac))],
  ["its lines of 16 characters in HTML", mac.replaceAll(/.{16}/g, "$&<br>")],
  ["its lines of 16 characters in JSON", JSON.stringify(mac.replaceAll(/.{16}/g, "$&\n"))],
  ["its value with spaces of no width", [...mac].join("\u200b")],
  [
    "webhook-signature in HTML with names",
    standard.replaceAll("+", "&plus;").replaceAll("/", "&sol;").replace("=", "&equals;"),
  ],
  [
    "webhook-signature in JSON with codes",
    standard.replaceAll(/[+/=]/g, (each) => `\\u00${encoded(each, "hex").toUpperCase()}`),
  ],
  ["webhook-signature in groups", base64.replaceAll(/.{4}/g, "$& ")],
  ["its characters as JSON, in a text of JSON", JSON.stringify(JSON.stringify([...base64]))],
  ["a secret with hyphens", [...secrets[0]].join("-")],
  ["a signature that it expected, with colons", `expected sha256=${hex("other body").replaceAll(/..(?!$)/g, "$&:")}`],
  ["webhook-signature in JSON of PHP", standard.replaceAll("/", "\\/")],
  ["a signature in hex", encoded(service, "hex")],
  ...[0, 1, 2].map((n): [string, string] => [`headers in base64, ${n}`, encoded("x".repeat(n) + service, "base64")]),
  ["headers in base64url", encoded(JSON.stringify(headers), "base64url")],
  ["the beginning of a signature", `${service.slice(0, 30)}…`],
  ["the end of a signature", `…${service.slice(-30)}`],
  ["the signature that it expected", `expected sha256=${hex("other body")}`],
  ["the secret", secrets[0]],
  ["a previous secret, without whsec_", hex("previous").toUpperCase()],
  ["a secret that is any text", secrets[2]],
  ["a secret in base64", encoded(secrets[0], "base64")],
  ["another secret", `whsec_${hex("of another webhook")}`],
  ["its path", "Cannot POST /services/T000/B01/SECRETTOKEN"],
  ["its URL", url],
  ["its URL in a URL", `/login?next=${encodeURIComponent(url)}`],
  ["the token of its path", "unknown token secrettoken"],
  ["the value of its query", "key 'v4lue-of-key' was revoked"],
];
const hidden = [
  mac,
  base64,
  hex("current"),
  hex("previous"),
  hex("other body"),
  "any text",
  "SECRETTOKEN",
  "v4lue-of-key",
];

describe.each(echoes)("an echo of %s", (_, echo) => {
  const decodings = (text: string) => [
    text,
    text.replaceAll(/[^a-z0-9]/gi, ""),
    decodeURIComponent(text.replaceAll("%", (mark, at) => (/^%[0-9a-f]{2}/i.test(text.slice(at)) ? mark : "%25"))),
    encoded(text, "latin1"),
    Buffer.from(text, "base64").toString(),
    Buffer.from(text, "base64").toString("hex"),
    Buffer.from(text, "hex").toString(),
  ];
  /** Returns the hidden values of which a text has 16 characters or more in a row. */
  const found = (text: string) =>
    hidden.filter((value) =>
      decodings(text).some((decoded) => {
        const size = Math.min(16, value.length);
        const parts = Array.from({ length: value.length - size + 1 }, (_, at) => value.slice(at, at + size));
        return parts.some((part) => decoded.toLowerCase().includes(part.toLowerCase()));
      }),
    );

  test("is masked", () => {
    expect(shown(echo)).toContain("***");
    expect(found(shown(echo))).toEqual([]);
    expect(shown(`<pre>received: ${echo}</pre> Thanks.`)).toMatch(/^<pre>received: .*\*\*\*.*<\/pre> Thanks\.$/s);
  });

  test("is masked in a header", () => {
    const outcome = withoutSent({ ...failed, headers: { "x-echo": echo } }, url, headers, secrets);
    expect(found(outcome.headers?.["x-echo"] ?? "")).toEqual([]);
  });

  test("is masked wherever the text is cut", () => {
    // Of a signature that was not sent, only the beginning is known.
    const isKnown = !echo.startsWith("expected");
    for (let length = 12; length < Math.min(echo.length, 300); length += 7) {
      expect([length, found(shown(echo.slice(0, length)))]).toEqual([length, []]);
      if (isKnown) expect([length, found(shown(echo.slice(-length)))]).toEqual([length, []]);
    }
  });
});

test.each([
  ["a signature", mac],
  ["a secret", secrets[0]],
  ["a token of the path", "SECRETTOKEN"],
  ["another signature", `sha256=${hex("other body")}`],
])("what follows %s stays: a line break, and text", (_, value) => {
  expect(shown(`a\n${value}\nb`)).toBe("a\n***\nb");
  expect(shown(`${value}\n\n${value}\n`)).toBe("***\n\n***\n");
});

test.each([
  "the signature is not valid, see https://docs.example.com/webhooks#signature",
  '{"error":"unknown service","request_id":"01a2036b-8c4c-7000-8000-000000000001"}',
  "Error: at /usr/local/lib/node_modules/express/lib/router/layer.js:95:5",
  "İstanbul: geçersiz imza 🚀",
  "deploy.failed 01a1",
])("%s is kept", (text) => {
  expect(shown(text)).toBe(text);
});

test("a success, and an outcome without text, are unchanged", () => {
  expect(withoutSent({ durationMs: 1, statusCode: 200, excerpt: "ok" }, url, headers, secrets).excerpt).toBe("ok");
  const refused = { durationMs: 1, errorCode: "connection_refused" as const };
  expect(withoutSent(refused, url, headers, secrets)).toBe(refused);
});

test("the target of a redirect keeps its path, and loses a signature", () => {
  const detail = `${url}/&signature=${service}`;
  expect(withoutSent({ ...failed, detail }, url, headers, secrets).detail).toBe(`${url}/&signature=sha256=***`);
});

test.each<[string, string]>([
  [url, "https://hooks.example.com/***"],
  ["https://hooks.example.com:8443/a", "https://hooks.example.com:8443/***"],
  ["https://[2001:db8::1]/a?b", "https://[2001:db8::1]/***"],
  ["https://hooks.example.com", "https://hooks.example.com"],
  ["https://hooks.example.com/", "https://hooks.example.com/"],
  ["https://hooks.example.com/?token=a", "https://hooks.example.com/***"],
  ["/services/new", "/***"],
  [
    `Redirects are not followed: register ${url}/ instead.`,
    "Redirects are not followed: register https://hooks.example.com/*** instead.",
  ],
  [String.raw`{"to":"https:\/\/hooks.example.com\/a"}`, '{"to":"https:\\/\\/hooks.example.com/***"}'],
  ['<a href="HTTPS://hooks.example.com/a">', '<a href="HTTPS://hooks.example.com/***">'],
])("%s is shown as %s", (text, expected) => {
  expect(withMaskedUrls(text)).toBe(expected);
  expect(withMaskedUrls(expected)).toBe(expected);
});

test("a masked URL is recognized", () => {
  expect(isMaskedUrl(new URL(withMaskedUrls(url)))).toBe(true);
  expect(isMaskedUrl(new URL(url))).toBe(false);
});

test.each(["a", "ab1", "0f4kQ8zL+/x1", mac, "https://", "sha256=", "T000/"])(
  "a text and a URL of many %s cost little CPU time",
  (part) => {
    const long = `https://hooks.example.com/${part.repeat(2_000 / part.length)}`;
    const excerpt = part.repeat(1_024 / part.length);
    const before = process.threadCpuUsage();
    for (let count = 0; count < 10; count++) withoutSent({ ...failed, excerpt }, long, headers, secrets);
    for (let count = 0; count < 10; count++) withMaskedUrls(excerpt);
    expect(process.threadCpuUsage(before).user / 10_000).toBeLessThan(15);
  },
);
