import { type Wait, waitOf } from "../../../../functions/deliveries/log/waiting.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const at = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();

type Row = Parameters<typeof waitOf>[0];
type Webhook = Parameters<typeof waitOf>[1];

const due = (seconds: number, row: Partial<Row> = {}): Row => ({
  status: "pending",
  next_attempt_at: at(seconds),
  ...row,
});
const open = { failing_since: at(-99), probe_at: at(20) };

test.each<[string, Row, Webhook, Wait["waiting_for"], string | null]>([
  ["a success", { status: "succeeded" }, {}, null, null],
  ["a failure of a disabled webhook", { status: "failed" }, { disabled_at: at(-9) }, null, null],
  ["a held delivery", { status: "held" }, { disabled_at: at(-9) }, "suspended", null],
  ["a held delivery of a webhook that was enabled again", { status: "held" }, {}, "suspended", null],
  ["a retry that is planned", due(20), {}, "schedule", at(20)],
  ["a retry that is planned, with an open circuit", due(60), open, "recovery", at(20)],
  ["a retry that is planned, in the first 30 s of failures", due(60), { failing_since: at(-29) }, "schedule", at(60)],
  ["an attempt that is due for 5 s", due(-5), {}, null, at(-5)],
  ["an attempt that is due for longer", due(-5.001), {}, "busy", at(-5.001)],
  ["an attempt that is due now, of a slow webhook", due(0), { slow_since: at(-9) }, "busy", at(0)],
  [
    "an attempt that is due, with an open circuit, before the first probe",
    due(-300),
    { failing_since: at(-99) },
    "recovery",
    at(0),
  ],
  ["an attempt that is due, with an overdue probe", due(-300), { ...open, probe_at: at(-1) }, "recovery", at(0)],
  ["an attempt that is due, with an open circuit", due(-1), open, "recovery", at(20)],
  ["an attempt that is due in the first 30 s of failures", due(-1), { failing_since: at(-29) }, null, at(-1)],
  ["a redelivery that is due, with an open circuit", due(-1, { trigger: "redeliver" }), open, null, at(-1)],
  ["a recovery that is due, with an open circuit", due(-1, { trigger: "recover" }), open, "recovery", at(20)],
  ["a retry of a disabled webhook", due(20), { disabled_at: at(-9) }, "suspended", at(20)],
  ["an attempt that is due, of a disabled webhook", due(-9), { ...open, disabled_at: at(-9) }, "suspended", at(-9)],
  ["a retry of a suspended project", due(20), { suspended_at: at(-9) }, "suspended", at(20)],
  ["a test delivery to a disabled webhook", due(-1, { trigger: "test" }), { disabled_at: at(-9) }, null, at(-1)],
  [
    "a redelivery in a suspended project",
    due(-1, { trigger: "redeliver" }),
    { suspended_at: at(-9) },
    "suspended",
    at(-1),
  ],
])("waiting_for of %s", (_, row, webhook, waiting_for, next_attempt_at) => {
  expect(waitOf(row, webhook, now)).toEqual({ waiting_for, next_attempt_at });
});
