import type { Delivery } from "../../client/src/client.ts";
import { Time } from "./components.tsx";
import { waitingTexts } from "./vocabulary.ts";

type Waiting = Pick<Delivery, "waiting_for" | "next_attempt_at">;

/** Says in a list why a delivery is not attempted now, and when it will be. */
export function WaitingNote({ waiting }: { waiting: Waiting }) {
  const { waiting_for, next_attempt_at } = waiting;
  const isPlanned = waiting_for === "schedule" || waiting_for === null;
  if (!isPlanned)
    return (
      <p class="fine">
        <Sentence waiting={waiting} />
      </p>
    );
  if (next_attempt_at === null) return null;
  return (
    <span class="fine">
      {" · next "}
      <Time at={next_attempt_at} />
    </span>
  );
}

/** Says in a delivery's detail why it is not attempted now, and when it will be. */
export function WaitingBox({ waiting }: { waiting: Waiting }) {
  // The list of attempts shows the time of the next one.
  if (waiting.waiting_for === null || waiting.waiting_for === "schedule") return null;
  return (
    <p class="note neutral">
      <Sentence waiting={waiting} />
    </p>
  );
}

function Sentence({ waiting: { waiting_for, next_attempt_at } }: { waiting: Waiting }) {
  const { sentence, next } = waitingTexts[waiting_for ?? "schedule"] ?? waitingTexts.schedule;
  return (
    <>
      {sentence}
      {next_attempt_at !== null && (
        <>
          {`; ${next} `}
          <Time at={next_attempt_at} />
        </>
      )}
      .
    </>
  );
}
