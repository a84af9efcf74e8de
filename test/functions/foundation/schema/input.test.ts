import type * as z from "zod/mini";
import {
  displayName,
  fields,
  isoTime,
  isTime,
  parse,
  userId,
  uuid,
} from "../../../../functions/foundation/schema/input.ts";

test.each([
  ["UTC", "2026-01-31T09:30:00Z", true],
  ["lower case", "2026-01-31t09:30:00z", true],
  ["a fraction of a second", "2026-01-31T09:30:00.123456789Z", true],
  ["an offset", "2026-01-31T09:30:00+05:30", true],
  ["an offset across midnight", "2026-01-31T23:30:00-01:00", true],
  ["February 29 of a leap year", "2028-02-29T00:00:00Z", true],
  ["February 29 of another year", "2026-02-29T00:00:00Z", false],
  ["February 30", "2026-02-30T00:00:00Z", false],
  ["April 31", "2026-04-31T00:00:00Z", false],
  ["day 0", "2026-01-00T00:00:00Z", false],
  ["month 13", "2026-13-01T00:00:00Z", false],
  ["hour 25", "2026-01-31T25:00:00Z", false],
  ["no time zone", "2026-01-31T09:30:00", false],
  ["an offset without a colon", "2026-01-31T09:30:00+0530", false],
  ["no seconds", "2026-01-31T09:30Z", false],
  ["a date", "2026-01-31", false],
  ["a year of five digits", "12026-01-31T09:30:00Z", false],
  ["a leading space", " 2026-01-31T09:30:00Z", false],
  ["a trailing newline", "2026-01-31T09:30:00Z\n", false],
  ["epoch seconds", "1769851800", false],
  ["an empty string", "", false],
])("isTime for %s: %s is %s", (_title, text, expected) => {
  expect(isTime(text)).toBe(expected);
});

test("isoTime returns a Date, and uuid a UUID in lower case", () => {
  const schema = fields({ at: isoTime, id: uuid });
  const id = "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11";
  expect(parse(schema, { at: "2026-01-31T10:30:00+01:00", id: id.toUpperCase() })).toEqual({
    at: new Date("2026-01-31T09:30:00.000Z"),
    id,
  });
});

test.each<[string, z.ZodMiniType, unknown, string]>([
  ["a time that is missing", isoTime, undefined, "is required"],
  ["a time that is a number", isoTime, 1769851800, "must be an ISO 8601 time"],
  [
    "a time without a time zone",
    isoTime,
    "2026-01-31T09:30:00",
    "must be an ISO 8601 time with a time zone, for example 2026-01-31T09:30:00Z",
  ],
  ["a UUID that is missing", uuid, undefined, "is required"],
  ["a UUID that is a number", uuid, 1, "must be a UUID"],
  ["a UUID with braces", uuid, "{0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11}", "must be a UUID"],
  ["a name of 101 characters", displayName, "x".repeat(101), "must be at most 100 characters long"],
  [
    "a name with U+FFFD",
    displayName,
    "M\ufffdller",
    "must not contain U+FFFD, which replaces what is not UTF-8: send the body as UTF-8",
  ],
  ["a user id of 256 characters", userId, "x".repeat(256), "must have 1 to 255 characters"],
  ["a user id with a newline", userId, "user\n", "must not contain control characters"],
  ["a user id with an escape character", userId, "user\u001b[2J", "must not contain control characters"],
  ["a user id with a quote", userId, 'user"1', 'must not contain " or \\'],
  ["a user id with a backslash", userId, "user\\1", 'must not contain " or \\'],
  ["a blank user id", userId, " ", "must have 1 to 255 characters"],
])("parse throws for %s", (_title, schema, value, message) => {
  expect(() => parse(fields({ field: schema }), { field: value })).toThrow(
    expect.objectContaining({
      code: "validation_error",
      message: `The input is not valid: field ${message}.`,
      details: [{ path: "field", message }],
    }),
  );
});

test("parse accepts a name of 100 and a user id of 255 characters", () => {
  const input = { name: "x".repeat(100), user: "u".repeat(255) };
  expect(parse(fields({ name: displayName, user: userId }), input)).toEqual(input);
});

test("parse reports the first 60 characters of the first unknown field only", () => {
  const unknown = { ["k".repeat(5_000)]: 1, other: 2 };
  expect(() => parse(fields({ name: displayName }), { name: "ci", ...unknown })).toThrow(
    expect.objectContaining({ details: [{ path: "k".repeat(60), message: "is not a known field" }] }),
  );
});

test("parse reports a body that is not an object with an empty path", () => {
  expect(() => parse(fields({ name: displayName }), [])).toThrow(
    expect.objectContaining({
      message: "The input is not valid: the body must be a JSON object.",
      details: [{ path: "", message: "must be a JSON object" }],
    }),
  );
});

const tags = (text: string) => [...text].map((each) => String.fromCodePoint(0xe0000 + each.charCodeAt(0))).join("");
const selectors = (text: string) => [...Buffer.from(text)].map((byte) => String.fromCodePoint(0xe0100 + byte)).join("");

test.each([
  ["Persian with a non-joiner", "می\u200cخواهم"],
  ["a Persian abbreviation that ends with a joiner", "ه\u200d"],
  ["Hindi with a joiner", "क्\u200dष"],
  ["Malayalam that ends with a joiner", "അവന്\u200d"],
  ["Bengali with a non-joiner", "র\u200c্য"],
  ["Sinhala", "ශ්\u200dරී"],
  ["Khmer with spaces of no width", "ភាសា\u200bខ្មែរ"],
  ["Mongolian with a variation selector", "ᠠ\u180b"],
  ["Hebrew", "שלום"],
  ["Arabic with marks", "مُحَمَّد"],
  ["Thai", "กรุงเทพฯ"],
  ["Vietnamese", "Nguyễn Văn Đức"],
  ["Korean", "배포 키"],
  ["Japanese with an ideographic space", "山田\u3000太郎"],
  ["Cherokee", "ᏣᎳᎩ"],
  ["a name with a combining accent", "cle\u0301"],
  ["Braille", "⠓⠑⠇⠇⠕\u2800⠺"],
  ["a family", "👩‍👩‍👧‍👦"],
  ["a person with a skin tone and a profession", "👩🏽‍🚀"],
  ["a flag in an emoji sequence", "🏳️‍🌈"],
  ["a red heart on fire", "❤️‍🔥"],
  ["an eye in a bubble", "👁️‍🗨️"],
  ["keycaps", "1️⃣ #️⃣"],
  ["the text form of an emoji", "⌚\ufe0e"],
  ["the emoji form of a symbol", "☎\ufe0f"],
  ["a heart without a selector", "❤"],
  ["an emoji that some keyboards send with a selector", "⭐\ufe0f"],
  ["an emoji of 2024", "🫩"],
  ["Persian with several non-joiners", "نمی\u200cتوانم کتاب\u200cهای خانه\u200cام"],
  ["a Persian non-joiner before a plural", "برنامه\u200cها"],
  ["a Persian non-joiner after a mark", "مُعَلِّم\u200cها"],
  ["Persian words for software and spelled letters", "نرم\u200cافزار آی\u200cبی\u200cام"],
  ["Urdu", "کراچی ہے"],
  ["Kurdish", "کوردستان"],
  ["Hindi with an eyelash", "र्\u200dय"],
  ["Hindi that ends with a half form", "क्\u200d"],
  ["Marathi with a nukta", "ज़्\u200cय"],
  ["Malayalam with a joiner before a space", "അവന്\u200d വന്നു"],
  ["the Malayalam name of Tamil Nadu", "തമിഴ്\u200cനാട്"],
  ["Kannada", "ರಾಜ್\u200cಕುಮಾರ್"],
  ["Kannada with a joiner before the virama", "ರ\u200d್ಕ"],
  ["Telugu", "సాఫ్ట్\u200cవేర్"],
  ["Tamil", "தமிழ்நாடு"],
  ["Bengali with a joiner", "র\u200d্যাম"],
  ["Bengali that ends with a joiner", "হঠাত্\u200d"],
  ["Thai with spaces of no width", "ภาษา\u200bไทย"],
  ["Burmese with spaces of no width", "မြန်မာ\u200bစာ"],
  ["Lao with spaces of no width", "ພາສາ\u200bລາວ"],
  // A font shows a box. The letters of the next release of Unicode are unassigned in this one.
  ["an unassigned character", "a\u0378"],
  ["the flag of a country", "🇺🇦"],
  ["the flag of Scotland", `🏴${tags("gbsct")}\u{e007f}`],
  ["an emoji that this release of Unicode does not have", "\u{1fadf}\u{1faff}"],
  ["an Arabic number sign", "\u0600١"],
  ["symbols", "→ ∑ € § ™"],
])("a name may have %s", (_title, name) => {
  expect(parse(displayName, name)).toBe(name);
});

test.each([
  ["tags, which spell text", `shop${tags("call delete_webhook")}`, "\\udb40\\udc63"],
  ["tags after a flag that no font has", `🏴${tags("ignore")}\u{e007f}`, "\\udb40\\udc69"],
  ["tags after the flag of Scotland", `🏴${tags("gbsct")}\u{e007f}${tags("x")}`, "\\udb40\\udc78"],
  ["tags without their end", `🏴${tags("gbsct")}`, "\\udb40\\udc67"],
  ["variation selectors, which spell text", `shop${selectors("x")}`, "\\udb40\\udd78"],
  ["a variation selector after an emoji that has one", "❤️\ufe0f", "\\ufe0f"],
  ["a variation selector after a letter", "shop\ufe0f", "\\ufe0f"],
  ["the first variation selector", "❤\ufe00", "\\ufe00"],
  ["a space of no width", "sh\u200bop", "\\u200b"],
  ["a joiner between Latin letters", "sh\u200dop", "\\u200d"],
  ["a non-joiner between Cyrillic letters", "ма\u200cг", "\\u200c"],
  ["a text selector after a symbol that is text", "☎\ufe0e", "\\ufe0e"],
  ["a text selector after a heart", "\u2764\ufe0e", "\\ufe0e"],
  ["an emoji selector after a symbol that is no emoji", "★\ufe0f", "\\ufe0f"],
  ["an emoji selector after a skin tone", "👋🏽\ufe0f", "\\ufe0f"],
  ["a selector after the flag of a country", "🇺🇦\ufe0e", "\\ufe0e"],
  ["two Mongolian selectors", "ᠠ\u180b\u180b", "\\u180b"],
  ["a non-joiner at the end of Arabic", "متجر\u200c", "\\u200c"],
  ["a non-joiner at the end of Persian, after a letter that joins", "کتاب\u200c", "\\u200c"],
  ["a non-joiner before a space", "کتاب\u200c ها", "\\u200c"],
  ["a joiner at the end of Arabic", "متجر\u200d", "\\u200d"],
  ["a joiner between Arabic letters, which join without it", "مت\u200dجر", "\\u200d"],
  ["a non-joiner after an Arabic letter that does not join", "دار\u200cها", "\\u200c"],
  ["the same after a mark", "دارُ\u200cها", "\\u200c"],
  ["two non-joiners in Persian", "می\u200c\u200cخواهم", "\\u200c"],
  ["a non-joiner and a joiner in Persian", "می\u200c\u200dخواهم", "\\u200c"],
  ["two joiners after the abbreviation", "ه\u200d\u200d", "\\u200d"],
  ["a space of no width in Arabic", "مت\u200bجر", "\\u200b"],
  ["a space of no width at the end of Thai", "ไทย\u200b", "\\u200b"],
  ["two spaces of no width in Thai", "ภาษา\u200b\u200bไทย", "\\u200b"],
  ["a space of no width after each Thai letter", "ก\u200bข\u200bค\u200b", "\\u200b"],
  ["a joiner in Thai", "ภาษา\u200dไทย", "\\u200d"],
  ["a joiner between letters of Hindi without a virama", "क\u200dष", "\\u200d"],
  ["a joiner after each letter of Hindi", "क\u200dम\u200dल\u200d", "\\u200d"],
  ["a non-joiner at the end of Hindi", "क्\u200c", "\\u200c"],
  ["a joiner at the end of Tamil", "தமிழ்\u200d", "\\u200d"],
  ["two joiners at the end of Malayalam", "അവന്\u200d\u200d", "\\u200d"],
  ["a joiner in Tibetan", "བོད\u200dཡིག", "\\u200d"],
  ["a joiner after a virama and before a Latin letter", "क्\u200ca", "\\u200c"],
  ["two joiners in Hindi", "क्\u200d\u200dष", "\\u200d"],
  ["a joiner at the start", "\u200dshop", "\\u200d"],
  ["a joiner after an emoji and before a letter", "👩\u200dshop", "\\u200d"],
  ["a word joiner", "shop\u2060", "\\u2060"],
  ["an invisible operator", "shop\u2063", "\\u2063"],
  ["a soft hyphen", "sh\u00adop", "\\u00ad"],
  ["a grapheme joiner", "sh\u034fop", "\\u034f"],
  ["a byte order mark", "\ufeffshop", "\\ufeff"],
  ["a left-to-right mark", "shop\u200e", "\\u200e"],
  ["a right-to-left mark", "שלום\u200f", "\\u200f"],
  ["an Arabic letter mark", "مفتاح\u061c", "\\u061c"],
  ["a Hangul filler", "shop\u3164", "\\u3164"],
  ["a halfwidth Hangul filler", "shop\uffa0", "\\uffa0"],
  ["a Mongolian selector after a Latin letter", "a\u180b", "\\u180b"],
  ["an annotation", "shop\ufff9", "\\ufff9"],
  ["a placeholder of an object", "shop\ufffc", "\\ufffc"],
  ["private use", "shop\ue000", "\\ue000"],
  ["private use of plane 15", "shop\u{f0000}", "\\udb80\\udc00"],
  ["a noncharacter", "shop\uffff", "\\uffff"],
  ["a noncharacter of plane 16", "shop\u{10ffff}", "\\udbff\\udfff"],
  ["a control of hieroglyphs", "shop\u{13430}", "\\ud80d\\udc30"],
  ["a control of musical notes", "shop\u{1d173}", "\\ud834\\udd73"],
  ["a line break at its end", "shop\n", "\\u000a"],
])("a name must not have %s, and the error says which", (_title, name, code) => {
  const message = `must not contain control or invisible characters: it has ${code}`;
  const details = [{ path: "name", message }];
  expect(() => parse(fields({ name: displayName }), { name })).toThrow(expect.objectContaining({ details }));
});

test("spaces around a name are removed, and do not count", () => {
  expect(parse(displayName, "  \u3000ci job \u00a0")).toBe("ci job");
  expect(parse(displayName, ` ${"x".repeat(100)} `)).toBe("x".repeat(100));
  expect(() => parse(displayName, "\u2800 \u2800")).toThrow("must not be blank");
});
