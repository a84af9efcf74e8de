import type {
  Attempt,
  Certification,
  Delivery,
  Project,
  WebhookHealth,
  WebhookInList,
} from "../../../client/src/client.ts";
import { jsonText } from "../terminal/terminal.ts";
import { fixFor, fixForError } from "./explain.ts";
import { UNTRUSTED_NOTICE, untrustedText } from "./untrusted.ts";

/* Results of tools, with what others wrote apart from what the service says: names, URLs, texts of receivers. Pure. */

interface View {
  structured: Record<string, unknown>;
  text: string;
}

/** Lists projects. Admins of a project choose its name. */
export function projectsView(projects: Project[]): View {
  const known = projects.map(({ id, role, created_at }) => ({ id, role, created_at }));
  const names = projects.map(({ id, name }) => ({ id, name }));
  return view({ projects: known }, "The names of the projects", { names });
}

export function webhooksView(webhooks: WebhookInList[]): View {
  const details = webhooks.map(untrustedOf);
  return view({ webhooks: webhooks.map(trustedOf) }, "The URLs and other details of the webhooks", { details });
}

/** @param secret shown once, after the creation */
export function createdWebhookView(webhook: CreatedRecord, secret: string): View {
  const known = { webhook: { ...trustedOf(webhook), secret } };
  const { structured, text } = view(known, "The URL of the webhook", { details: untrustedOf(webhook) });
  return { structured, text: `${text}\n\nSave the secret now: it is not shown again.` };
}

type CreatedRecord = Pick<WebhookInList, "id" | "project_id" | "url" | "events" | "created_at">;

/** The fields that only the service writes. All others, also those of a later version, are taken for untrusted. */
const trustedFields = [
  "id",
  "project_id",
  "events",
  "created_at",
  "enabled",
  "disabled_reason",
  "suspended_at",
  "mode",
  "format",
  "delivery",
  "settle_seconds",
  "signatures",
  "subscription",
  "last_certification",
];

const isTrusted = ([name]: [string, unknown]) => trustedFields.includes(name);

/** A webhook; a new one has no health yet. */
interface ShownWebhook {
  id: string;
  health?: WebhookHealth;
}

export const trustedOf = (webhook: ShownWebhook): Record<string, unknown> => ({
  ...Object.fromEntries(Object.entries(webhook).filter(isTrusted)),
  ...(webhook.health && { health: healthView(webhook.health) }),
});

/** The hint of a redirect contains its target, which the receiver chooses. */
function healthView({ state, since, last_success_at, last_error, next_probe_at }: WebhookHealth) {
  const error = last_error && { error_code: last_error.error_code, fix: fixForError(last_error) };
  return { state, since, last_success_at, last_error: error, next_probe_at };
}

export const untrustedOf = ({ health, ...webhook }: ShownWebhook): Record<string, unknown> => ({
  id: webhook.id,
  ...Object.fromEntries(Object.entries(webhook).filter((entry) => !isTrusted(entry) && entry[0] !== "secret")),
  ...(health?.last_error && { hint: health.last_error.hint }),
});

/** Shows a certification. */
export function certificationView(certification: Certification): View {
  const checks = certification.checks.map(withFix);
  const shown = { certification: { ...certification, checks } };
  return { structured: shown, text: jsonText(shown) };
}

/** Shows a delivery, without text of the receiver. */
export const deliveryView = ({ last_attempt, ...delivery }: Delivery) => ({
  ...delivery,
  last_attempt: last_attempt && withFix(last_attempt),
});

/** Replaces the hint of an attempt: that of a redirect contains its target, which the receiver chooses. */
export const withFix = <Result extends Pick<Attempt, "hint" | "status_code">>({ hint, ...result }: Result) => ({
  ...result,
  fix: hint === null ? null : fixFor({ hint, status_code: result.status_code }),
});

function view(known: Record<string, unknown>, label: string, untrusted: Record<string, unknown>): View {
  const text = [jsonText(known), untrustedText(label, untrusted)].join("\n\n");
  return { structured: { ...known, untrusted: { notice: UNTRUSTED_NOTICE, ...untrusted } }, text };
}
