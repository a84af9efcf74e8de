import { discordMessage, googleChatMessage, slackMessage, teamsCard } from "./chat-messages.ts";
import { cloudEvent } from "./cloudevents.ts";
import { repositoryDispatch } from "./github-dispatch.ts";
import type { FormattedEvent } from "./message.ts";

/*
 * The forms in which a webhook can get its events. Each is a pure function: the same event gives the same bytes, which
 * the signatures are over. The stored body of a delivery is always the standard one.
 */

export const webhookFormats = [
  "standard",
  "slack",
  "discord",
  "teams",
  "google-chat",
  "github-dispatch",
  "cloudevents",
] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

export interface Formatted {
  body: string;
  contentType: string;
}

const formats: Record<Exclude<WebhookFormat, "standard">, (event: FormattedEvent) => object> = {
  slack: slackMessage,
  discord: discordMessage,
  teams: teamsCard,
  "google-chat": googleChatMessage,
  "github-dispatch": repositoryDispatch,
  cloudevents: cloudEvent,
};

/** Returns body and content type of a format other than standard. Never throws, whatever `data` has. */
export const formatted = (format: Exclude<WebhookFormat, "standard">, event: FormattedEvent): Formatted => ({
  body: JSON.stringify(formats[format](event)),
  contentType: format === "cloudevents" ? "application/cloudevents+json" : "application/json",
});
