import type { Attempt, DeliveryWithAttempts, Webhook } from "../../../client/src/client.ts";

/* Why a delivery has not arrived, and what to do next, in plain words. Pure. */

export interface Explanation {
  /** What happened. */
  explanation: string;
  /** What to do about it. */
  next_step: string;
}

type Known = Pick<DeliveryWithAttempts, "id" | "event" | "status" | "attempts" | "next_attempt_at" | "test">;
type State = Pick<Webhook, "id" | "enabled" | "disabled_reason">;

export function explain(delivery: Known, webhook: State): Explanation {
  const { id, event, status, attempts, next_attempt_at, test } = delivery;
  const last = attempts.at(-1);
  const failures = attempts.filter(({ error_code }) => error_code !== null).length;
  const tried = `${event} was attempted ${times(attempts.length)}`;
  const cause = last === undefined || last.error_code === null ? "" : ` The last attempt failed: ${causeOf(last)}`;
  const fix = last === undefined ? "Wait for the first attempt." : fixFor(last);
  const again = `redeliver_delivery with delivery_id ${id} sends it once more.`;
  switch (status) {
    case "succeeded":
      return {
        explanation: `Nothing is wrong: ${tried} and the receiver has accepted it${failures > 0 ? ` after ${times(failures)} without success` : ""}.`,
        next_step: "Nothing is to be done.",
      };
    case "failed":
      return {
        explanation: `${tried}, and none is to follow${test ? ": a test is attempted once" : ""}.${cause}`,
        next_step: `${fix} Then ${again}`,
      };
    case "pending":
      return {
        explanation: `${tried}; the next attempt is planned for ${next_attempt_at ?? "now"}.${cause}`,
        next_step:
          last === undefined
            ? `${fix} If it stays away, the webhook is failing and waits for a probe.`
            : `${fix} The next attempt comes by itself; ${again}`,
      };
    case "held":
      return {
        explanation: `${tried} and is kept: the webhook is or was disabled${reasonOf(webhook)}.${cause}`,
        next_step: webhook.enabled
          ? `The webhook is enabled again: ${again} All that is held: svc deliveries recover --webhook ${webhook.id} --since <time>.`
          : `${last === undefined ? "" : `${fix} `}Enable the webhook (svc webhooks update ${webhook.id} --enable), then send what is held: svc deliveries recover --webhook ${webhook.id} --since <time>.`,
      };
    case "cancelled":
      return {
        explanation: `${tried} and was cancelled: its webhook was deleted.`,
        next_step: "Nothing can be sent any more. A new webhook gets the events that come from now on.",
      };
  }
}

const times = (count: number): string => (count === 1 ? "once" : `${count} times`);

const reasons: Record<string, string> = {
  gone: ", because the receiver answered 410 (gone)",
  failing: ", because it failed for days without a success",
  manual: ", because somebody turned it off",
};

const reasonOf = ({ disabled_reason }: State): string =>
  disabled_reason === null ? "" : (reasons[disabled_reason] ?? "");

const causes: Record<string, string> = {
  timeout: "there was no complete answer within 15 seconds.",
  dns_error: "the host name of the URL does not resolve.",
  connection_refused: "nothing accepts connections at the host and port of the URL.",
  connection_reset: "the connection was closed before the answer was complete.",
  tls_error: "the TLS certificate of the receiver is not accepted.",
  address_blocked: "the host of the URL leads to an address that is not public.",
  invalid_response: "what came back is not HTTP.",
};

function causeOf({ error_code, status_code }: Attempt): string {
  if (error_code === "http_status") return `the receiver answered ${status_code}, where 2xx is wanted.`;
  return causes[error_code ?? ""] ?? `${error_code}.`;
}

/** The hint, except for what a receiver has put into it: where its redirect leads. */
export function fixFor({ hint, status_code }: Attempt): string {
  const isRedirect = status_code !== null && status_code >= 300 && status_code < 400;
  if (isRedirect) return "Redirects are not followed: change the webhook's URL to where the receiver really is.";
  return hint ?? "The last attempt has succeeded.";
}
