import type { Client, Delivery } from "../../../packages/client/src/client.ts";
import {
  countRecoverable,
  MAX_READ,
  type RecoverableStatus,
  recoveryCountText,
} from "../../../packages/client/src/recovery-count.ts";

/* `svc deliveries recover --dry-run`, against a stub of the client. */

const noon = Date.parse("2026-11-21T12:00:00.000Z");
const since = new Date(noon);

/** A delivery of an event that many milliseconds after noon. */
function delivery(
  afterNoonMs: number,
  status: Delivery["status"],
  test = false,
  waiting_for: Delivery["waiting_for"] = null,
): Delivery {
  const time = (noon + afterNoonMs).toString(16).padStart(12, "0");
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`;
  // Long after the event: only the id counts.
  const created_at = "2026-11-22T00:00:00.000Z";
  const rest = {
    webhook_id: "w-1",
    event: "deploy.started",
    deployment_id: "x",
    waiting_for,
    next_attempt_at: null,
  } as const;
  return { id, ...rest, status, test, created_at, attempt_count: 1, last_attempt: null };
}

/** Counts with a list of deliveries, newest first. */
async function count(deliveries: Iterable<Delivery>, status?: RecoverableStatus) {
  let read = 0;
  const api: Pick<Client, "eachDelivery"> = {
    async *eachDelivery() {
      for (const each of deliveries) {
        read += 1;
        yield each;
      }
    },
  };
  const counted = await countRecoverable(api, { projectId: "p-1", webhookId: "w-1" }, { since, status });
  return { ...counted, read };
}

const list = [
  delivery(13, "pending", false, "schedule"),
  delivery(12, "pending", false, "recovery"),
  delivery(11, "pending", false, "busy"),
  delivery(9, "pending"),
  delivery(8, "failed"),
  delivery(7, "held"),
  delivery(6, "failed", true),
  delivery(5, "succeeded"),
  delivery(4, "cancelled"),
  delivery(3, "shadowed"),
  delivery(0, "failed"),
  delivery(-1, "failed"),
  delivery(-2, "failed"),
];

test("counts failed, held and waiting deliveries of events since the time, without tests, and reads no further", async () => {
  const counted = { count: 5, failed: 2, held: 1, pending: 2, shadowed: 0, superseded: 0 };
  expect(await count(list)).toEqual({ ...counted, complete: true, read: 12 });
});

test.each([
  ["failed", { count: 2, failed: 2, held: 0, pending: 0 }],
  ["held", { count: 1, failed: 0, held: 1, pending: 0 }],
  ["pending", { count: 2, failed: 0, held: 0, pending: 2 }],
  ["shadowed", { count: 1, failed: 0, held: 0, shadowed: 1 }],
] as const)("counts only %s deliveries with this status", async (status, expected) => {
  expect(await count(list, status)).toMatchObject({ ...expected, complete: true });
});

test("the count of a list without earlier events is complete", async () => {
  expect(await count(list.slice(4, 5))).toMatchObject({ count: 1, complete: true });
});

test.each([
  [MAX_READ, "failed", true, MAX_READ],
  [MAX_READ + 1, "failed", false, MAX_READ],
  [2 * MAX_READ, "succeeded", false, 0],
] as const)(
  "the count among %i %s deliveries since the time is complete: %s",
  async (length, status, complete, found) => {
    const many = Array.from({ length }, () => delivery(1, status));
    expect(await count(many)).toMatchObject({ count: found, complete, read: Math.min(length, MAX_READ + 1) });
  },
);

test.each([
  [true, "7 would be sent again: 2 failed, 1 held, 4 waiting."],
  [
    false,
    "At least 7 would be sent again: 2 failed, 1 held, 4 waiting. Only the newest 10000 deliveries were counted.",
  ],
])("the text of a count whose completeness is %s does not promise more", (complete, text) => {
  expect(recoveryCountText({ count: 7, failed: 2, held: 1, pending: 4, shadowed: 0, superseded: 0, complete })).toBe(
    text,
  );
});

test("the text of a count of shadowed deliveries names no others", () => {
  const counted = { count: 2, failed: 0, held: 0, pending: 0, shadowed: 2, superseded: 0, complete: true };
  expect(recoveryCountText(counted)).toBe("2 would be sent again: 2 shadowed.");
});
