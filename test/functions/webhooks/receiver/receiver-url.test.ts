import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import { hostOf, normalizedUrl, validateReceiverUrl } from "../../../../functions/webhooks/receiver/receiver-url.ts";

const oneRange = parseCidrs(["127.0.0.0/8"]);
const allowed = parseCidrs(["127.0.0.0/8", "::1/128"]);
const longUrl = (length: number) => "https://example.com/".padEnd(length, "x");

test.each([
  "https://example.com",
  "https://example.com/hook?a=b&c=%20",
  "HTTPS://EXAMPLE.COM/Hook",
  "https://example.com:8443/hook",
  "https://example.com:443/hook",
  "https://example.com./hook",
  `https://${"a".repeat(63)}.example.com/`,
  "https://a_b.example.com/hook",
  "https://a-b.c--d.example.co.uk/",
  "https://xn--mnchen-3ya.example/",
  "https://does-not-resolve.example.invalid/hook",
  "https://localhost.example.com/",
  "https://local.example.com/",
  "https://mylocal.com/",
  "https://internal.dev/",
  "https://notlocalhost.com/",
  "https://127.0.0.1.example.com/",
  "https://8.8.8.8/hook",
  "https://[2606:4700:4700::1111]/hook",
  "https://example.com/hook?next=http://127.0.0.1/",
  "https://example.com/user:password@host",
  longUrl(2048),
])("validateReceiverUrl accepts %s, with and without allowed ranges", (url) => {
  expect(validateReceiverUrl(url, [])).toBeUndefined();
  expect(validateReceiverUrl(url, allowed)).toBeUndefined();
});

const PRIVATE = "must not point to a private or reserved address";
const NAME = "must have a public host name";
const SCHEME = "must start with https://";
const ABSOLUTE = "must be an absolute URL that starts with https://";
/** The reason where ranges are allowed: for them plain http is, too. */
const whereAllowed = (reason: string) =>
  [SCHEME, ABSOLUTE].includes(reason) ? `${reason}, or http:// and an address that the operator allows` : reason;
const CHARACTERS = "must not contain spaces, control characters or unencoded Unicode";
const LABELS = "must have a host name of at most 253 characters, with 1 to 63 between its dots";
const FRAGMENT = "must not contain a fragment (#…), which is never sent";
const CREDENTIALS = "must not contain a user name or password";

test.each([
  ["longer than 2048 characters", longUrl(2049), "must be at most 2048 characters long"],
  [
    "longer than 2048 characters when encoded",
    `https://example.com/${'"'.repeat(1000)}`,
    "must be at most 2048 characters long with its special characters encoded",
  ],
  ["plain http", "http://example.com/hook", SCHEME],
  ["plain http to a public address", "http://8.8.8.8/", SCHEME],
  ["plain http to a private address", "http://10.0.0.1/", SCHEME],
  ["ftp", "ftp://example.com/", ABSOLUTE],
  ["file", "file:///etc/passwd", ABSOLUTE],
  ["javascript", "javascript:alert(1)", ABSOLUTE],
  ["data", "data:text/plain,x", ABSOLUTE],
  ["gopher", "gopher://127.0.0.1:6379/_SET", ABSOLUTE],
  ["websocket", "wss://example.com/", ABSOLUTE],
  ["no scheme", "example.com/hook", ABSOLUTE],
  ["no scheme but slashes", "//example.com/hook", ABSOLUTE],
  ["one slash", "https:/example.com", ABSOLUTE],
  ["no slash", "https:example.com", ABSOLUTE],
  ["backslashes", "https:\\\\example.com", ABSOLUTE],
  ["no host", "https://", ABSOLUTE],
  ["an invalid port", "https://example.com:99999/", ABSOLUTE],
  ["an open bracket", "https://[::1/", ABSOLUTE],
  ["a host with a space encoded", "https://exa%20mple.com/", ABSOLUTE],
  ["an IPv6 zone", "https://[fe80::1%25eth0]/", ABSOLUTE],
  ["an address out of range", "https://256.256.256.256/", ABSOLUTE],
  ["a number that is not an address", "https://4294967296/", ABSOLUTE],
  ["empty", "", CHARACTERS],
  ["a space in front", " https://example.com/", CHARACTERS],
  ["a space behind", "https://example.com/ ", CHARACTERS],
  ["a space inside", "https://example.com/a b", CHARACTERS],
  ["a newline", "https://example.com/\nX-Header: 1", CHARACTERS],
  ["a carriage return", "https://example.com/\r", CHARACTERS],
  ["a tab in the host", "https://exam\tple.com/", CHARACTERS],
  ["NUL", "https://example.com/\0", CHARACTERS],
  ["DEL", "https://example.com/\u007f", CHARACTERS],
  ["Unicode in the host", "https://münchen.example/", CHARACTERS],
  ["Unicode in the path", "https://example.com/ü", CHARACTERS],
  ["full-width digits", "https://１２７.0.0.1/", CHARACTERS],
  ["full-width letters", "https://ｌocalhost/", CHARACTERS],
  ["circled letters", "https://ⓛocalhost/", CHARACTERS],
  ["an ideographic full stop", "https://127。0。0。1/", CHARACTERS],
  ["a lone surrogate", "https://example.com/\ud800", CHARACTERS],
  ["a user", "https://user@example.com/", CREDENTIALS],
  ["a user and a password", "https://user:password@example.com/", CREDENTIALS],
  ["a password alone", "https://:password@example.com/", CREDENTIALS],
  ["a host name in place of the user", "https://example.com@127.0.0.1/", CREDENTIALS],
  ["a page in place of its URL", "https://webhook.site/#!/01930000-0000-7000-8000-00000000c2ff", FRAGMENT],
  ["a fragment after a query", "https://example.com/x?a=1#b", FRAGMENT],
  ["port 0", "https://example.com:0/", "must not use port 0"],
  ["two dots", "https://a..example.com/", LABELS],
  ["a dot at its start", "https://.example.com/", LABELS],
  ["two root dots", "https://example.com../", LABELS],
  ["a label of 64 characters", `https://${"a".repeat(64)}.com/`, LABELS],
  ["a name of 263 characters", `https://${"a.".repeat(130)}com/`, LABELS],
  ["a name below localhost", "https://app.localhost/", NAME],
  ["a name below localhost with a root dot", "https://app.localhost./", NAME],
  ["localdomain", "https://localhost.localdomain/", NAME],
  ["mDNS", "https://printer.local/", NAME],
  ["mDNS with a root dot", "https://printer.local./", NAME],
  ["internal", "https://service.internal/", NAME],
  ["Google's metadata", "https://metadata.google.internal/computeMetadata/v1/", NAME],
  ["EC2's own name", "https://ip-10-0-0-1.ec2.internal/", NAME],
  ["internal in capitals", "https://SERVICE.INTERNAL/", NAME],
  ["intranet", "https://wiki.intranet/", NAME],
  ["home.arpa", "https://nas.home.arpa/", NAME],
  ["lan", "https://router.lan/", NAME],
  ["corp", "https://mail.corp/", NAME],
  ["one label", "https://intranet/", NAME],
  ["one label with a root dot", "https://redis./", NAME],
  ["a private address", "https://10.0.0.1/", PRIVATE],
  ["a private address with a port", "https://192.168.0.1:8443/", PRIVATE],
  ["cloud metadata", "https://169.254.169.254/latest/meta-data/", PRIVATE],
  ["cloud metadata in decimal", "https://2852039166/", PRIVATE],
  ["cloud metadata in hex", "https://0xa9fea9fe/", PRIVATE],
  ["cloud metadata in octal parts", "https://0251.0376.0251.0376/", PRIVATE],
  ["v4-mapped loopback", "https://[::ffff:127.0.0.1]/", PRIVATE],
  ["v4-mapped metadata in hex", "https://[::ffff:a9fe:a9fe]/", PRIVATE],
])("validateReceiverUrl rejects %s: %s, with and without allowed ranges", (_title, url, reason) => {
  expect(validateReceiverUrl(url, [])).toBe(reason);
  expect(validateReceiverUrl(url, allowed)).toBe(whereAllowed(reason));
});

test.each([
  ["127.0.0.1/", PRIVATE],
  ["127.0.0.1:8080/hook", PRIVATE],
  ["127.0.0.1./", PRIVATE],
  ["127.1/", PRIVATE],
  ["127.255.255.255/", PRIVATE],
  ["2130706433/", PRIVATE],
  ["0x7f000001/", PRIVATE],
  ["0x7F.1/", PRIVATE],
  ["0177.0.0.1/", PRIVATE],
  ["017700000001/", PRIVATE],
  ["%31%32%37.0.0.1/", PRIVATE],
  ["[::1]/", PRIVATE],
  ["[0:0:0:0:0:0:0:1]:8443/", PRIVATE],
  ["[::0.0.0.1]/", PRIVATE],
  ["localhost/", NAME],
  ["LocalHost/", NAME],
  ["localhost.:3000/hook", NAME],
  ["%6c%6f%63alhost/", NAME],
])("validateReceiverUrl accepts loopback over https and http only when it is allowed: %s", (rest, reason) => {
  expect(validateReceiverUrl(`https://${rest}`, [])).toBe(reason);
  expect(validateReceiverUrl(`http://${rest}`, [])).toBe(SCHEME);
  expect(validateReceiverUrl(`https://${rest}`, allowed)).toBeUndefined();
  expect(validateReceiverUrl(`http://${rest}`, allowed)).toBeUndefined();
});

test("validateReceiverUrl rejects the ports of services other than web servers, and accepts all others", () => {
  const ports = Array.from({ length: 65_535 }, (_, index) => index + 1);
  const isRejected = (port: number) => validateReceiverUrl(`https://example.com:${port}/`, []) !== undefined;
  expect(ports.filter(isRejected)).toEqual([
    ...[21, 22, 23, 25, 53, 69, 79, 110, 111, 119, 135, 137, 139, 143, 161, 179, 389, 445, 465, 512, 513, 514, 515],
    ...[548, 554, 587, 631, 636, 873, 989, 990, 993, 995, 1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389],
    ...[5060, 5061, 5432, 5672, 5900, 5984, 6000, 6379, 6665, 6666, 6667, 6668, 6669, 6697, 9042, 9092, 9200, 9300],
    ...[10_250, 11_211, 27_017],
  ]);
});

test.each(["example.com", "8.8.8.8", "127.0.0.1", "localhost"])(
  "validateReceiverUrl rejects the port of a service of %s, also where the host is allowed",
  (host) => {
    const reason = "must not use port 22, which is that of a service other than a web server; use 443, for example";
    expect(validateReceiverUrl(`https://${host}:22/`, allowed)).toBe(reason);
  },
);

test("validateReceiverUrl accepts localhost when one range is allowed", () => {
  expect(validateReceiverUrl("http://localhost:3000/", oneRange)).toBeUndefined();
});

test.each([
  ["http://user@127.0.0.1/", CREDENTIALS],
  ["ftp://127.0.0.1/", ABSOLUTE],
  ["http://app.localhost/", SCHEME],
  ["http://127.0.0.1/ ", CHARACTERS],
])("an allowed range does not allow %s", (url, reason) => {
  expect(validateReceiverUrl(url, oneRange)).toBe(whereAllowed(reason));
});

test.each([
  ["https://[::1]:8443/", "::1"],
  ["https://Example.COM./", "example.com"],
  ["https://127.1/", "127.0.0.1"],
  ["https://example.com:8443/", "example.com"],
])("the host of %s is %s", (url, host) => {
  expect(hostOf(new URL(url))).toBe(host);
});

test.each([
  ["https://example.com", "https://example.com"],
  ["https://example.com/", "https://example.com/"],
  ["https://example.com?x=1", "https://example.com/?x=1"],
  ["https://EXAMPLE.com", "https://example.com/"],
  ["https://example.com.", "https://example.com/"],
  ["https://example.com.:8443/a?b", "https://example.com:8443/a?b"],
  ["https://example.com:443", "https://example.com/"],
  ["https://example.com/a/./b/../c", "https://example.com/a/c"],
  ["https://example.com/a\\b", "https://example.com/a/b"],
  ["https://134744072/", "https://8.8.8.8/"],
  ["https://[2606:4700:4700:0::1111]/", "https://[2606:4700:4700::1111]/"],
  ["https://example.com/%7Eme?q='<>'", "https://example.com/%7Eme?q=%27%3C%3E%27"],
])("normalizedUrl returns the URL that is requested: %s is %s", (text, expected) => {
  expect(normalizedUrl(text)).toBe(expected);
  expect(normalizedUrl(expected)).toBe(expected);
  const withoutRootDot = new URL(text.replace(/\.(?=$|:)/, ""));
  expect(new URL(expected).href).toBe(withoutRootDot.href);
});
