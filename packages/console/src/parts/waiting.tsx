import type { Delivery } from "../../../client/src/client.ts";
import { waitingTexts } from "../data/vocabulary.ts";
import { isFailing, Time } from "./components.tsx";

type Waiting = Pick<Delivery, "status" | "last_attempt" | "waiting_for" | "next_attempt_at">;

/** Whether the attempt that was planned is under way or about to start. */
export const isBeingSent = ({ waiting_for, next_attempt_at }: Waiting): boolean =>
  waiting_for === null && next_attempt_at !== null && Date.parse(next_attempt_at) <= Date.now();

const textsOf = ({ waiting_for }: Waiting) => waitingTexts[waiting_for ?? "schedule"] ?? waitingTexts.schedule;

/** A planned time. Past means that it is about to happen. */
const Due = ({ at }: { at: string }) => (Date.parse(at) <= Date.now() ? "now" : <Time at={at} />);

/** Says in a list, in a few words, why a delivery is not attempted now or when it will be. */
export function WaitingNote({ waiting }: { waiting: Waiting }) {
  const { waiting_for, next_attempt_at } = waiting;
  if (isBeingSent(waiting)) return <span class="fine">being sent</span>;
  const { sentence, mark, isTimed } = textsOf(waiting);
  if (next_attempt_at === null && (isTimed || waiting_for === null)) return null;
  return (
    <span class="fine" title={waiting_for === null ? undefined : `${sentence}.`}>
      {`${mark === "next" && isFailing(waiting) ? "retry" : mark} `}
      {isTimed && next_attempt_at !== null && <Due at={next_attempt_at} />}
    </span>
  );
}

/** Whether a delivery waits for something else than its time. */
export const needsWaitingBox = ({ waiting_for }: Waiting): boolean =>
  waiting_for !== null && waiting_for !== "schedule";

/** Says in a delivery's detail why it is not attempted now, and when it will be. */
export function WaitingBox({ waiting }: { waiting: Waiting }) {
  // The list of attempts shows the time of the next one.
  if (!needsWaitingBox(waiting)) return null;
  const { sentence, next } = textsOf(waiting);
  const { next_attempt_at } = waiting;
  return (
    <p class="note neutral">
      {sentence}
      {next_attempt_at !== null && (
        <>
          {`; ${next} `}
          <Due at={next_attempt_at} />
        </>
      )}
      .
    </p>
  );
}
