import { escapedTo, type FormattedEvent, messageOf } from "./message.ts";

/* Messages for the incoming webhooks of chats. A text of the pipeline mentions no one and forms no link. */

const HTML: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const escapeHtml = (character: string): string => HTML[character] ?? character;

/** Of a link in Slack: an `&` is escaped to five characters, and a text object with more than 3,000 is refused. */
const MAX_ESCAPED_URL_CHARACTERS = 2_000;

/**
 * Slack. `text` is for notifications; a text object of type plain_text has no markup and at most 3,000 characters.
 * https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 * https://docs.slack.dev/reference/block-kit/composition-objects/text-object
 */
export function slackMessage(event: FormattedEvent): object {
  const { line, details, link } = messageOf(event);
  const url = link?.url.replaceAll("&", "&amp;") ?? "";
  const linked = link && url.length <= MAX_ESCAPED_URL_CHARACTERS ? `<${url}|${link.title}> · ` : "";
  return {
    text: escapedTo(3_000, line, escapeHtml),
    blocks: [
      { type: "section", text: { type: "plain_text", text: escapedTo(3_000, line, String) } },
      {
        type: "context",
        elements: [{ type: "mrkdwn", text: `${linked}${escapedTo(500, details, escapeHtml)}`, verbatim: true }],
      },
    ],
  };
}

/** Markdown of Discord, and what begins a mention or an emoji. */
const escapeMarkdown = (character: string): string =>
  /[\\*_~`|>#[\]()<@:-]/.test(character) ? `\\${character}` : character;
const DISCORD_CHARACTERS = 2_000;
const SUPPRESS_EMBEDS = 4;

/**
 * Discord. `allowed_mentions` keeps any text from a ping.
 * https://discord.com/developers/docs/resources/webhook#execute-webhook
 */
export function discordMessage(event: FormattedEvent): object {
  const { line, details, link } = messageOf(event);
  const rest = `\n-# ${escapedTo(500, details, escapeMarkdown)}`;
  const linked = link ? ` [${link.title}](<${link.url}>)` : "";
  const content = escapedTo(DISCORD_CHARACTERS - linked.length - rest.length, line, escapeMarkdown) + linked + rest;
  return { content, allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS };
}

const TEAMS_COLORS = { neutral: "Default", good: "Good", bad: "Attention" };
const TEAMS_CHARACTERS = 2_000;

/**
 * Microsoft Teams: an adaptive card for the trigger "When a Teams webhook request is received" of Workflows. A TextRun
 * has no markdown, and `<at>` mentions only who `msteams.entities` has. The limit is 28 KB.
 * https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
 */
export function teamsCard(event: FormattedEvent): object {
  const { line, details, link } = messageOf(event);
  // `{{DATE(…)}}` is a function of cards, also after a third brace.
  const run = (text: string, style: object) => ({
    type: "RichTextBlock",
    inlines: [
      { type: "TextRun", text: escapedTo(TEAMS_CHARACTERS, text.replaceAll(/\{(?=\{)/g, "{ "), String), ...style },
    ],
  });
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      run(line, { weight: "Bolder", color: TEAMS_COLORS[event.tone] }),
      run(details, { size: "Small", isSubtle: true }),
    ],
    ...(link && { actions: [{ type: "Action.OpenUrl", ...link }] }),
  };
  return { type: "message", attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", content }] };
}

/** Google Chat has no escapes: `<users/all>` mentions everyone, and `<url|text>` is a link. */
const withoutBrackets = (character: string): string => ({ "<": "‹", ">": "›" })[character] ?? character;
const GOOGLE_CHAT_CHARACTERS = 4_000;

/** Google Chat. https://developers.google.com/workspace/chat/format-messages */
export function googleChatMessage(event: FormattedEvent): object {
  const { line, details, link } = messageOf(event);
  const linked = link ? ` <${link.url}|${link.title}>` : "";
  const text = escapedTo(GOOGLE_CHAT_CHARACTERS - linked.length - 502, line, withoutBrackets) + linked;
  return { text: `${text}\n${escapedTo(500, details, withoutBrackets)}` };
}
