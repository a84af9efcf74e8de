// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are source code.
import type { Mistake } from "./product.ts";

/* Mistakes that the model must find. */

/** Schedules in which a mistake is found: in every test, or by hand (`node test/model/run.ts mistakes`). */
export const QUICK = 2_500;
const LONG = 15_000;

const enter =
  "  await inParallel(placed, PARALLEL_WRITES, ({ place }) => putPlace(place));\n  const isFirst = !isInVisit && (await wake(webhook, at));\n";

export const mistakes: Mistake[] = [
  {
    name: "the row is written before its place and wake-up",
    file: "deliveries/backlog.ts",
    from: enter,
    to:
      "  await inParallel(placed, PARALLEL_WRITES, ({ place, delivery, transition }) => change(delivery, transition));\n" +
      enter,
    within: QUICK,
  },
  {
    name: "a row that enters keeps a later wake-up",
    file: "deliveries/backlog-store.ts",
    from: "when: when`due > ${due}`",
    to: "when: when`due < ${due}`",
    within: LONG,
  },
  {
    name: "the wake-up is removed although a row has entered",
    file: "deliveries/backlog-store.ts",
    from: "when`wakes = ${wakes}`",
    to: "when`NOT wakes < ${wakes}`",
    within: QUICK,
  },
  {
    name: "the lease ends before the process",
    file: "attempts/work.ts",
    from: "Math.min(MAX_LIFE_MS, remainingMs()) + LEASE_MARGIN_MS",
    to: "20_000",
    within: LONG,
  },
  {
    name: "the lease is not checked",
    file: "deliveries/backlog-store.ts",
    from: "allOf(isDue, isFree)",
    to: "allOf(isDue)",
    within: QUICK,
  },
  {
    name: "a row is written over a change of another process",
    file: "deliveries/delivery-store.ts",
    from: "when`version = ${readVersion}`",
    to: "when`attribute_exists(id) OR version = ${readVersion}`",
    within: QUICK,
    seed: 471,
  },
  {
    name: "a duplicate of an event is due at once",
    file: "deliveries/plan-delivery.ts",
    from: 'isCarried || handedOver === "perhaps"',
    to: "isCarried",
    within: QUICK,
    seed: 116,
  },
  {
    name: "a refused message leads to a row that is due at once",
    file: "deliveries/plan-delivery.ts",
    from: 'isCarried || handedOver === "perhaps"',
    to: 'handedOver === "perhaps"',
    within: LONG,
    seed: 10_570,
  },
  {
    name: "a message sends the delivery of any row",
    file: "attempts/carried.ts",
    from: "(!row || isLeftToMessage(row, now))",
    to: "(!row || row)",
    within: QUICK,
  },
  {
    name: "a message sends a row that is due soon",
    file: "attempts/carried.ts",
    from: "next_attempt_at >= addSeconds(now, settings.duplicateSeconds() / 2)",
    to: "next_attempt_at >= now.toISOString()",
    within: QUICK,
    seed: 697,
  },
  {
    name: "a leftover is removed at once",
    file: "attempts/work.ts",
    from: "written_at < addSeconds(new Date(), -LEFTOVER_SECONDS)",
    to: "written_at",
    within: QUICK,
  },
  {
    name: "a new delivery is held without a second look at its webhook",
    file: "deliveries/backlog.ts",
    from: "if (!webhook || holdsDeliveries(webhook)) return isWritten;",
    to: "if (isWritten || !isWritten) return isWritten;",
    within: LONG,
  },
  {
    name: "a delivery that waits is held without a second look at its webhook",
    file: "attempts/work.ts",
    from: "if (!webhook || isHeldBy(webhook, next)) await removePlace",
    to: "if (webhook || !webhook) await removePlace",
    within: QUICK,
    seed: 1_367,
  },
  {
    name: "a visit reads its webhook once",
    file: "attempts/work.ts",
    from: "const { row, webhook, secrets } = await readForRequest({ webhook_id: keys.webhook_id, id: place.delivery_id }, keys);",
    to: "const { row, webhook: read, secrets } = await readForRequest({ webhook_id: keys.webhook_id, id: place.delivery_id }, keys);\n  const webhook = (visit as never as { read: typeof read }).read ??= read;",
    within: QUICK,
  },
  {
    name: "a line is given back while an outcome is to be recorded",
    file: "attempts/work.ts",
    from: "if (!visit.isUnrecorded) return await",
    to: "return await",
    seed: 27_505,
    within: LONG,
  },
  {
    name: "a delivery that waits is sent in shadow mode",
    file: "attempts/attempt.ts",
    from: 'if (webhook.mode === "shadow") {',
    to: 'if (webhook.mode === "shadow" && !isInVisit) {',
    within: QUICK,
  },
  {
    name: "a late failure decides over a success",
    file: "deliveries/delivery-transitions.ts",
    from: 'if (effect === "overtaken") {',
    to: 'if (effect === "overtaken" && row === undefined) {',
    within: LONG,
    seed: 41_518,
  },
  {
    name: "an attempt is recorded twice",
    file: "deliveries/delivery-transitions.ts",
    from: "if (hasAttempt(before, attempt)) return undefined;",
    to: "",
    within: QUICK,
    seed: 311,
  },
  {
    name: "an attempt recorded later replaces the row by what its sender had read",
    file: "attempts/record.ts",
    from: "const completed = { basis: { ...basis, body }, row,",
    to: "const completed = { basis: { ...basis, body }, row: row && ({ ...basis, body } as Delivery),",
    within: LONG,
  },
  {
    name: "a request during an attempt is forgotten",
    file: "deliveries/delivery-transitions.ts",
    from: 'if (effect === "requested") return',
    to: 'if (effect === "requested" && !row) return',
    within: LONG,
  },
];
