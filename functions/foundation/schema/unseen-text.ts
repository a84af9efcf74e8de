/*
 * Characters that a reader does not see: an assistant reads what they spell, and two names that differ in them look the same. Names
 * are refused with them; the packages show them as codes in text that others wrote.
 */

const inScripts = (names: string) => names.replaceAll(/(\w+) ?/g, String.raw`\p{scx=$1}`);
const CURSIVE = inScripts("Arab Syrc Mong Nkoo Adlm Rohg");
/** Letters that do not join the next one: a non-joiner after them changes nothing (Joining_Type R and U of Unicode). */
const NOT_JOINED = "ءآأؤإاةدذرزوٱ-ٳٵ-ٷڈ-ڙۀۃ-ۋۍۏےۓەۮۯ";
const INDIC = inScripts("Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Khmr");
const VIRAMAS = String.raw`\u094D\u09CD\u0A4D\u0ACD\u0B4D\u0BCD\u0C4D\u0CCD\u0D4D\u0DCA`;
/** Scripts that have no visible space between words. */
const SPACELESS = inScripts("Khmr Mymr Thai Laoo");

/**
 * Where these characters are part of what a reader sees: a joiner between two letters that it changes, one at a time, similar to
 * RFC 5892, appendix A. At the end of a word only where it changes the letter before. Of the flags of regions, the three that fonts have.
 */
const VISIBLE_USE = [
  String.raw`(?<=(?![${NOT_JOINED}])(?=\p{L})[${CURSIVE}]\p{M}{0,3})\u200C(?=[${CURSIVE}])(?=\p{L})(?!ء)`,
  String.raw`(?<=(?<!\p{L})ه)\u200D(?![\p{L}\p{M}])`,
  String.raw`(?<=[${INDIC}][${VIRAMAS}])[\u200C\u200D](?=[${INDIC}])(?=\p{L})`,
  String.raw`(?<=[\p{scx=Deva}\p{scx=Beng}\p{scx=Mlym}][\u094D\u09CD\u0D4D])\u200D(?![\p{L}\p{M}])`,
  String.raw`(?<=\p{L})(?<=[${INDIC}])[\u200C\u200D](?=[${VIRAMAS}\u17C9\u17CA])`,
  String.raw`(?<=[${SPACELESS}]{2})\u200B(?=[${SPACELESS}])(?=\p{L})`,
  String.raw`(?<=\p{Script=Mongolian})(?<=\p{L})[\u180B-\u180F]`,
  String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F])\u200D(?=\p{Extended_Pictographic})`,
  String.raw`(?<=\p{Emoji_Presentation})(?<=\p{Extended_Pictographic})\uFE0E`,
  String.raw`(?<=\p{Emoji})(?<=\p{Extended_Pictographic})\uFE0F|(?<=[0-9#*])\uFE0F(?=\u20E3)`,
  "(?<=\u{1f3f4})\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}",
].join("|");

/**
 * Also what fonts ignore: joiners, marks of direction, fillers, variation selectors, tags (Default_Ignorable_Code_Point of
 * https://www.unicode.org/reports/tr44/). Not `\p{Cn}`: a reader sees a box, and the next version of Unicode has
 * further letters and emoji there.
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

/** Returns whether a text is valid Unicode, and a reader sees all of it. */
export const isPrintable = (text: string): boolean => text.isWellFormed() && firstUnseen(text) === undefined;
