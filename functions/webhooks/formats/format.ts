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
export interface FormattedEvent {
  deliveryId: string;
  event: string;
  project_id: string;
  deployment_id: string | null;
  timestamp: string;
  data: Record<string, unknown>;
  description?: string | undefined;
  tone: "neutral" | "good" | "bad";
  sequence: string;
  isTest: boolean;
}
export interface Formatted {
  body: string;
  contentType: string;
}
export function formatted(_format: Exclude<WebhookFormat, "standard">, event: FormattedEvent): Formatted {
  return { body: JSON.stringify({ text: event.event }), contentType: "application/json" };
}
