import type { Attempt, Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import {
  attempted,
  cancelled,
  effectOf,
  held,
  inserted,
  insertedHeld,
  newRequest,
  reopened,
  requested,
  shadowed,
  type Transition,
} from "../../../../functions/deliveries/line/delivery-transitions.ts";

/* What can happen to a row, as a table: pure functions of the row. */

const now = new Date("2026-03-01T12:00:00.000Z");
const later = "2026-03-01T13:00:00.000Z";
const place = { entry: `1#${later}#d#new`, due: later };
const RETENTION = 30 * 24 * 3600;

const rowOf = (changes: Partial<Delivery> = {}): Delivery => ({
  webhook_id: "w",
  id: "d",
  project_id: "p",
  event: "deploy.started",
  deployment_id: null,
  body: "{}",
  status: "pending",
  created_at: now.toISOString(),
  attempt_count: 0,
  expires_at: 1,
  version: "v",
  ...changes,
});
/** A row that waits at the place `old`. */
const waiting = (changes: Partial<Delivery> = {}): Delivery =>
  rowOf({ place: "old", next_attempt_at: now.toISOString(), ...changes });
const { version, ...unwritten } = rowOf();

const atPlace = { status: "pending", place: place.entry, next_attempt_at: later } as const;
const requestNow = newRequest(now);
const request = { requested_at: requestNow.key, expires_at: now.getTime() / 1000 + RETENTION };

const failure: Attempt = {
  ...{ number: 1, at: now.toISOString(), duration_ms: 7 },
  ...{ status_code: 503, error_code: "http_status", trigger: "schedule" },
};
const { error_code, ...answer } = failure;
const success: Attempt = { ...answer, status_code: 200 };
const shadow = { at: later, headers: { "webhook-id": "d" } };
const one = { attempts: [failure], attempt_count: 1 };

type Case = [title: string, transition: Transition, row: Delivery | undefined, next: Delivery | undefined];

test.each<Case>([
  ["inserted: a new delivery waits", inserted(unwritten, place), undefined, { ...unwritten, ...atPlace }],
  ["inserted: a row that exists stays", inserted(unwritten, place), rowOf({ status: "succeeded" }), undefined],
  ["shadowed: a new delivery", shadowed(unwritten, shadow), undefined, { ...unwritten, status: "shadowed", shadow }],
  [
    "shadowed: one that waits, which keeps its attempts",
    shadowed(waiting({ ...one, trigger: "recover" }), shadow),
    waiting({ ...one, trigger: "recover" }),
    rowOf({ ...one, status: "shadowed", shadow }),
  ],
  [
    "shadowed: one that a user has requested since it was read waits",
    shadowed(waiting(), shadow),
    waiting(request),
    undefined,
  ],
  [
    "shadowed: one that has succeeded stays",
    shadowed(unwritten, shadow),
    rowOf({ ...one, status: "succeeded" }),
    undefined,
  ],
  ["shadowed: one that has expired stays so", shadowed(waiting(), shadow), undefined, undefined],
  ["insertedHeld: without a place", insertedHeld(unwritten), undefined, { ...unwritten, status: "held" }],
  ["insertedHeld: a row that exists stays", insertedHeld(unwritten), rowOf(), undefined],

  [
    "held: keeps its place and its trigger",
    held("old"),
    waiting({ trigger: "test" }),
    rowOf({ status: "held", place: "old", trigger: "test" }),
  ],
  ["held: a row with another place stays", held("other"), waiting(), undefined],
  ["held: a row that ended stays", held("old"), rowOf({ status: "succeeded", place: "old" }), undefined],
  ["held: an expired row stays away", held("old"), undefined, undefined],
  ["reopened: a held row waits again", reopened("old", place), rowOf({ status: "held", place: "old" }), rowOf(atPlace)],
  [
    "reopened: a row that was held without a place",
    reopened(undefined, place),
    rowOf({ status: "held" }),
    rowOf(atPlace),
  ],
  [
    "reopened: a row that was held with another place stays",
    reopened("old", place),
    rowOf({ status: "held" }),
    undefined,
  ],
  ["reopened: a row that waits already stays", reopened("old", place), waiting(), undefined],

  ["cancelled: of a row that waits", cancelled, waiting({ trigger: "recover" }), rowOf({ status: "cancelled" })],
  ["cancelled: of a held row", cancelled, rowOf({ status: "held", place: "old" }), rowOf({ status: "cancelled" })],
  ["cancelled: a row that ended stays", cancelled, rowOf({ status: "failed" }), undefined],
])("%s", (_, transition, row, next) => {
  expect(transition(row)).toEqual(next);
});

describe("requested", () => {
  const redeliver = requested("redeliver", requestNow)(place);
  const recover = requested("recover", requestNow, ["failed", "held"])(place);
  const asked = (trigger: "redeliver" | "recover", attempt_count = 0) => ({
    ...rowOf({ attempt_count }),
    ...{ ...atPlace, ...request, trigger, attempts_before_schedule: attempt_count },
  });
  const waitingSince = (seconds: number) =>
    waiting({ trigger: "redeliver", requested_at: new Date(now.getTime() + seconds * 1000).toISOString() });
  test.each<Case>([
    [
      "a row that ended waits again, and its schedule restarts",
      redeliver,
      rowOf({ status: "failed", attempt_count: 8 }),
      asked("redeliver", 8),
    ],
    ["a row that waits for its retry is asked for", redeliver, waiting(), asked("redeliver")],
    ["a row that waits for a recovery is asked for", redeliver, waiting({ trigger: "recover" }), asked("redeliver")],
    ["a row that is asked for already stays", redeliver, waitingSince(-120), undefined],
    ["a row that has waited for two minutes is asked for again", redeliver, waitingSince(-120.001), asked("redeliver")],
    ["a request knows itself in a row that waits", redeliver, waiting({ trigger: "redeliver", ...request }), undefined],
    ["a request knows itself after its attempt", redeliver, waiting({ ...request, ...one }), undefined],
    [
      "a request knows itself after its success",
      redeliver,
      rowOf({ status: "succeeded", ...request, ...one }),
      undefined,
    ],
    ["a recovery knows itself after its failure", recover, rowOf({ status: "failed", ...request, ...one }), undefined],
    [
      "an asked row that was held is asked for again",
      redeliver,
      rowOf({ status: "held", trigger: "redeliver" }),
      asked("redeliver"),
    ],
    ["a held row is recovered", recover, rowOf({ status: "held" }), asked("recover")],
    [
      "a row that was held after a recovery of the same millisecond is recovered",
      recover,
      rowOf({ status: "held", requested_at: newRequest(now).key }),
      asked("recover"),
    ],
    ["a recovery knows itself in a row that was held since", recover, rowOf({ status: "held", ...request }), undefined],
    ["a row with a status that was not asked for stays", recover, waiting(), undefined],
    [
      "a row with 49 attempts is sent",
      redeliver,
      rowOf({ status: "failed", attempt_count: 49 }),
      asked("redeliver", 49),
    ],
    ["an expired row stays away", redeliver, undefined, undefined],
  ])("%s", (_, transition, row, next) => {
    expect(transition(row)).toEqual(next);
  });
});

describe("attempted", () => {
  const other: Attempt = { ...failure, duration_ms: 99 };
  const during = { requested_at: later };
  test.each<Case>([
    [
      "a success without a row inserts it",
      attempted(unwritten, success),
      undefined,
      { ...unwritten, attempts: [success], attempt_count: 1, status: "succeeded" },
    ],
    [
      "a failure without a row lets it wait",
      attempted(unwritten, failure, place),
      undefined,
      { ...unwritten, ...one, ...atPlace },
    ],
    [
      "a success ends the wait",
      attempted(waiting({ trigger: "test" }), success),
      waiting({ trigger: "test" }),
      rowOf({ attempts: [success], attempt_count: 1, status: "succeeded" }),
    ],
    [
      "a failure moves the row to the place of its retry",
      attempted(waiting({ trigger: "redeliver" }), failure, place),
      waiting({ trigger: "redeliver" }),
      rowOf({ ...one, ...atPlace }),
    ],
    ["the last failure ends the wait", attempted(waiting(), failure), waiting(), rowOf({ ...one, status: "failed" })],
    ["of a row that has expired leaves nothing", attempted(waiting(), failure, place), undefined, undefined],
    [
      "that is recorded already stays as it is",
      attempted(waiting(), { ...failure, number: 2 }, place),
      waiting(one),
      undefined,
    ],
    [
      "that began and ended with another one, which failed: a success is no repetition of it",
      attempted(waiting(), success),
      waiting(one),
      rowOf({ attempts: [failure, { ...success, number: 2 }], attempt_count: 2, status: "succeeded" }),
    ],

    // A row that was not there, or did not wait, when the request began.
    [
      "without a row, but a duplicate inserted it meanwhile: decides",
      attempted(unwritten, success),
      waiting(),
      rowOf({ attempts: [success], attempt_count: 1, status: "succeeded" }),
    ],
    [
      "after another attempt: a failure is added, and the plan stays",
      attempted(waiting(), failure),
      waiting({ attempts: [other], attempt_count: 1 }),
      waiting({ attempts: [other, { ...failure, number: 2 }], attempt_count: 2, attempts_before_schedule: 1 }),
    ],
    [
      "after another attempt: a success ends all",
      attempted(waiting(), success),
      waiting({ attempts: [other], attempt_count: 1 }),
      rowOf({ attempts: [other, { ...success, number: 2 }], attempt_count: 2, status: "succeeded" }),
    ],
    [
      "after a success: a failure is added, and the success stays",
      attempted(waiting(), failure, place),
      rowOf({ status: "succeeded", attempts: [{ ...success, duration_ms: 99 }], attempt_count: 1 }),
      rowOf({
        status: "succeeded",
        attempts: [
          { ...success, duration_ms: 99 },
          { ...failure, number: 2 },
        ],
        attempt_count: 2,
        attempts_before_schedule: 1,
      }),
    ],
    [
      "a failure of a cancelled row is added",
      attempted(waiting(), failure, place),
      rowOf({ status: "cancelled" }),
      rowOf({ ...one, status: "cancelled", attempts_before_schedule: 1 }),
    ],
    [
      "a success of a held row ends it",
      attempted(waiting(), success),
      rowOf({ status: "held", place: "old" }),
      rowOf({ attempts: [success], attempt_count: 1, status: "succeeded" }),
    ],

    [
      "a request during an attempt: a failure is added, and the request stays",
      attempted(waiting(), failure),
      waiting({ place: "asked", trigger: "redeliver", ...during }),
      waiting({ ...one, place: "asked", trigger: "redeliver", ...during, attempts_before_schedule: 1 }),
    ],
    [
      "a request during an attempt: a success does not end it",
      attempted(waiting(), success),
      waiting({ place: "asked", trigger: "redeliver", ...during }),
      waiting({
        attempts: [success],
        attempt_count: 1,
        place: "asked",
        trigger: "redeliver",
        ...during,
        attempts_before_schedule: 1,
      }),
    ],
  ])("%s", (_, transition, row, next) => {
    expect(transition(row)).toEqual(next);
  });

  test("numbers an attempt after those that are recorded", () => {
    const next = attempted(unwritten, { ...failure, at: later }, place)(waiting({ ...one, attempt_count: 4 }));
    expect(next?.attempts?.map(({ number }) => number)).toEqual([1, 5]);
  });

  test.each<[string, Delivery | undefined, ReturnType<typeof effectOf>]>([
    ["a row that has expired", undefined, "expired"],
    ["the row as read", waiting(), "decisive"],
    ["the row at another place", waiting({ place: "moved" }), "decisive"],
    ["a request meanwhile", waiting(during), "requested"],
    ["a request meanwhile that was held", rowOf({ status: "held", ...during }), "requested"],
    ["a request meanwhile that has ended", rowOf({ status: "succeeded", ...during }), "overtaken"],
    ["another attempt", waiting(one), "overtaken"],
    ["a held row", rowOf({ status: "held" }), "overtaken"],
  ])("%s: the attempt is %s", (_, row, effect) => {
    expect(effectOf(row, waiting())).toBe(effect);
  });

  test("no row, before and after: the attempt is decisive", () => {
    expect(effectOf(undefined, unwritten)).toBe("decisive");
  });
});
