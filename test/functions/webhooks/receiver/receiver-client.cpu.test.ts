import { costlyResponses, startCostlyReceiver } from "../../../support/costly-responses.ts";

const receiver = await startCostlyReceiver();
afterAll(receiver.end);

test.each(costlyResponses)("a response with $title costs at most $maxMs ms of CPU time", async ({ maxMs, index }) => {
  expect(await receiver.costOf(index)).toBeLessThan(maxMs);
});
