/*
 * Characters that a reader does not see: an assistant reads what they spell, and two names that differ in them look the same. Names
 * are refused with them; the packages show them as codes in text that others wrote.
 */

/** Scripts whose letters change beside a joiner, or whose words have no visible space between them. */
const SCRIPTS =
  "Arab Syrc Mong Nkoo Adlm Rohg Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Khmr Mymr Tibt Thai Laoo";
const EMOJI = String.raw`\p{Extended_Pictographic}\p{Emoji_Modifier}`;

/** Where these characters are part of what a reader sees. Of the flags of regions, the three that fonts have. */
const VISIBLE_USE = [
  String.raw`(?<=[${SCRIPTS.replaceAll(/(\w+) ?/g, String.raw`\p{scx=$1}`)}])[\u200B-\u200D]`,
  String.raw`(?<=\p{Script=Mongolian})[\u180B-\u180F]`,
  String.raw`(?<=[${EMOJI}\uFE0F])\u200D(?=\p{Extended_Pictographic})`,
  String.raw`(?<=[${EMOJI}])[\uFE0E\uFE0F]|(?<=[0-9#*])\uFE0F(?=\u20E3)`,
  "(?<=\u{1f3f4})\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}",
].join("|");

/**
 * Also what fonts ignore: joiners, marks of direction, fillers, variation selectors, tags (Default_Ignorable_Code_Point of
 * https://www.unicode.org/reports/tr44/). Not `\p{Cn}`: the next version of Unicode has further letters and emoji.
 */
const UNSEEN = String.raw`[\p{Cc}\p{Co}\p{Zl}\p{Zp}\p{DI}\p{Noncharacter_Code_Point}\uFFF9-\uFFFC\u{13430}-\u{1343F}]`;
const USED_OR_UNSEEN = new RegExp(`${VISIBLE_USE}|(${UNSEEN})`, "gu");

/** Replaces each character that a reader does not see. */
export const replaceUnseen = (text: string, replace: (character: string) => string): string =>
  text.replace(USED_OR_UNSEEN, (used, unseen: string | undefined) => (unseen === undefined ? used : replace(unseen)));

/** Returns a character as JSON escapes it, such as `\u200b`: a tag has two such codes. */
export const escaped = (character: string): string =>
  character.replaceAll(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Returns the first character of a text that a reader does not see; undefined = there is none. */
export const firstUnseen = (text: string): string | undefined =>
  [...text.matchAll(USED_OR_UNSEEN)].find(([, unseen]) => unseen !== undefined)?.[1];
