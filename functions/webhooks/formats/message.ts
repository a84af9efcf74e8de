/* An event as people read it: one line, the same in all chats. */

/** An event of a deployment, or about a webhook, as it is delivered. */
export interface FormattedEvent {
  deliveryId: string;
  event: string;
  project_id: string;
  /** null = the event is about a webhook. */
  deployment_id: string | null;
  /** ISO 8601. */
  timestamp: string;
  /** Of the pipeline: any JSON. */
  data: Record<string, unknown>;
  tone: "neutral" | "good" | "bad";
  /** Decimal digits, larger for a newer event of the same deployment. */
  sequence: string;
  /** It has sample data. */
  isTest: boolean;
}

/** What a chat shows of an event. Plain text: each product escapes it. */
export interface Message {
  /** Project, event, environment, branch, commit, duration and reason, as far as `data` has them. */
  line: string;
  /** What finds the event again: its name, the id of the deployment, and its time. */
  details: string;
  /** Absent = `data` has no http(s) URL. */
  link?: { title: string; url: string };
}

const ICONS = { neutral: "🔵", good: "✅", bad: "❌" };

export function messageOf({
  event,
  project_id,
  deployment_id,
  timestamp,
  data,
  tone,
  isTest,
}: FormattedEvent): Message {
  const field = (name: string, max = 80) => shown(data[name], max);
  const project = field("project") ?? `project ${project_id.slice(0, 8)}`;
  const where = [field("branch"), commitOf(field("commit")), field("name"), field("host")].filter(Boolean).join(", ");
  const parts = [
    `${isTest ? "[Test] " : ""}${ICONS[tone]} ${project}: ${event.replaceAll(/[._]/g, " ")}`,
    prefixed(" in ", field("environment")),
    where && ` (${where})`,
    prefixed(" by ", field("actor")),
    prefixed(" after ", durationOf(data.duration_seconds)),
    prefixed(": ", field("reason", 300) ?? field("error_code") ?? field("commit_message", 200)),
  ];
  const about = deployment_id === null ? [] : [`deployment ${deployment_id}`];
  return { line: parts.join(""), details: [event, ...about, timestamp].join(" · "), ...linkOf(data, tone) };
}

const prefixed = (prefix: string, text: string | undefined): string => (text === undefined ? "" : prefix + text);

/** Characters that are not seen, or that change the direction of what follows. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]+/gu;

/**
 * Returns a value as text of one line, cut to a number of characters; undefined for a value that is neither text nor
 * number.
 */
function shown(value: unknown, max: number): string | undefined {
  const text = typeof value === "string" ? value.slice(0, 10 * max) : numberText(value);
  const line = text?.toWellFormed().replaceAll(UNSEEN, " ").replaceAll(/\s+/g, " ").trim();
  if (!line) return undefined;
  const characters = [...line];
  return characters.length > max ? `${characters.slice(0, max - 1).join("")}…` : line;
}

/** A number that a double cannot hold was parsed to an object with its text. */
function numberText(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return JSON.isRawJSON(value) ? String((value as { rawJSON: string }).rawJSON) : undefined;
}

const commitOf = (commit: string | undefined): string | undefined =>
  commit !== undefined && /^[0-9a-f]{8,64}$/i.test(commit) ? commit.slice(0, 7) : commit;

/** 72 → `1 min 12 s` */
function durationOf(value: unknown): string | undefined {
  const seconds = Math.round(Number(numberText(value)));
  if (!(seconds >= 0) || seconds > 10_000_000) return undefined;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

const MAX_URL_CHARACTERS = 1_000;

/** Returns a link to the app, or to the log if the event is no success. */
function linkOf(data: FormattedEvent["data"], tone: FormattedEvent["tone"]): Pick<Message, "link"> {
  const [app, log] = [urlOf(data.url), urlOf(data.logs_url)];
  const links = [app && { title: "Open", url: app }, log && { title: "Log", url: log }];
  const [link] = (tone === "good" ? links : links.reverse()).filter((each) => each !== undefined && each !== "");
  return link ? { link } : {};
}

/** Returns an http(s) URL without characters that end a link in any of the products. */
function urlOf(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^https?:\/\//i.test(value) || !URL.canParse(value)) return undefined;
  const url = new URL(value).href.replaceAll(
    /[|<>()"'\\\s]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return url.length <= MAX_URL_CHARACTERS ? url : undefined;
}

/**
 * Escapes a text and cuts it so that it has at most `max` UTF-16 units then. Cuts no character and no escape.
 * @param escaped escapes one character
 */
export function escapedTo(max: number, text: string, escaped: (character: string) => string): string {
  let result = "";
  for (const character of text) {
    const next = escaped(character);
    if (result.length + next.length >= max) return `${result}…`;
    result += next;
  }
  return result;
}
