import { randomUUID } from "node:crypto";
import { sendEvent } from "../../../bin/command/send-event.ts";
import { queueUrl } from "../../../functions/foundation/platform/env.ts";
import { interceptSqs, restoreAws } from "../../support/aws-calls.ts";
import { eventOf, prepareDeliveries, takeMessages } from "../../support/deliveries.ts";

beforeAll(prepareDeliveries);
afterEach(restoreAws);

test("sendEvent sends any text, in the group of its project", async () => {
  const project_id = randomUUID();
  const event = { ...eventOf(project_id, { data: { text: "\ufffe\uffff" } }), project_id };
  const sent: unknown[] = [];
  // The embedded queue does not return the group.
  interceptSqs(({ input }, send) => {
    sent.push(input);
    return send();
  });
  await sendEvent(queueUrl("events"), event);
  expect(sent).toMatchObject([{ MessageGroupId: project_id }]);
  restoreAws();
  expect((await takeMessages("events")).map(({ body }) => JSON.parse(body))).toEqual([event]);
});
