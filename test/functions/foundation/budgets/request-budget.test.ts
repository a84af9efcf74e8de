import {
  budgetExceeded,
  budgetWindowAt,
  REQUEST_BUDGET_USED,
} from "../../../../functions/foundation/budgets/request-budget.ts";

test.each([
  ["at the start of a minute", "2026-03-01T10:15:00.000Z", "2026-03-01T10:15:00.000Z", 60],
  ["a millisecond after it", "2026-03-01T10:15:00.001Z", "2026-03-01T10:15:00.000Z", 60],
  ["a second after it", "2026-03-01T10:15:01.000Z", "2026-03-01T10:15:00.000Z", 59],
  ["in the middle of a minute", "2026-03-01T10:15:22.500Z", "2026-03-01T10:15:00.000Z", 38],
  ["in the last millisecond of a minute", "2026-03-01T10:15:59.999Z", "2026-03-01T10:15:00.000Z", 1],
])("the window %s is that minute, and ends in whole seconds, at least one", (_, now, startedAt, endsInSeconds) => {
  expect(budgetWindowAt(new Date(now))).toMatchObject({ startedAt, endsInSeconds });
});

test("a window expires an hour after its end", () => {
  const { expiresAt } = budgetWindowAt(new Date("2026-03-01T10:15:22.500Z"));
  expect(new Date(expiresAt * 1000).toISOString()).toBe("2026-03-01T11:16:00.000Z");
});

test("the error says what happened, when to try again, and has the same time in Retry-After", () => {
  const error = budgetExceeded(REQUEST_BUDGET_USED, budgetWindowAt(new Date("2026-03-01T10:15:22.500Z")));
  expect(error).toMatchObject({ status: 429, code: "rate_limited", headers: { "Retry-After": "38" } });
  expect(error.message).toBe(
    "The project has used up its 120 requests a minute for test deliveries, redeliveries, recoveries and certifications " +
      "(a recovery counts as 10, a certification as 6). Nothing was changed or sent. Try again in 38 s.",
  );
});
