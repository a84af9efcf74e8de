import { answerDetail, isRefusal, retryAfterIn } from "../../functions/webhooks/receiver/failure-cause.ts";
import { failureHint } from "../../functions/webhooks/receiver/failure-hints.ts";
import { chatReplies } from "./chats.ts";

test.each(chatReplies)("%s: %s returned %i %j", (_source, address, status, body, hint) => {
  const url = new URL(address);
  const detail = answerDetail(status, {}, body, url);
  expect(isRefusal(body, url)).toBe(status < 300);
  expect(failureHint({ error_code: "http_status", status_code: status, detail })).toContain(hint);
  // Nothing of the response but codes that are known.
  expect(detail ?? "").toMatch(/^([a-z-]+:[a-zA-Z_0-9]{0,40})?$/);
  expect(detail ?? "").not.toContain("U0123");
});

test.each([
  ['{"retry_after":1.5}', "2"],
  ['{ "retry_after" : 30, "global": true }', "30"],
  ['{"retry_after":"5"}', undefined],
  ['{"retry_after":-1}', undefined],
  ["retry_after: 5", undefined],
])("a body %s asks to wait for %s seconds", (body, seconds) => {
  expect(retryAfterIn(body)).toBe(seconds);
});
