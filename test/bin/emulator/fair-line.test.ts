import { FairLine } from "../../../bin/emulator/fair-line.ts";

const message = (project: string, number: number) => ({
  messageId: `${project} ${number}`,
  body: JSON.stringify({ project_id: project, number }),
});

function* taken(line: FairLine<{ messageId: string; body: string }>): Generator<string> {
  for (let next = line.shift(); next; next = line.shift()) yield next.messageId;
}

test("the messages of a busy project wait for those of others, each in its own order", () => {
  const line = new FairLine();
  for (let number = 1; number <= 1_000; number++) line.push(message("busy", number));
  line.push(message("quiet", 1), message("quiet", 2), message("other", 1));
  const order = [...taken(line)];
  expect(order.slice(0, 6)).toEqual(["busy 1", "quiet 1", "other 1", "busy 2", "quiet 2", "busy 3"]);
  expect(order).toHaveLength(1_003);
});

test("a project that has waited for nothing is not before one that has", () => {
  const line = new FairLine();
  line.push(message("late", 0));
  line.shift();
  for (let number = 1; number <= 10; number++) line.push(message("busy", number));
  for (let number = 1; number <= 5; number++) line.shift();
  line.push(message("late", 1), message("late", 2));
  expect([...taken(line)].slice(0, 4)).toEqual(["busy 6", "late 1", "busy 7", "late 2"]);
});

test("messages without a project keep their order", () => {
  const line = new FairLine();
  for (const messageId of ["a", "b", "c"]) line.push({ messageId, body: "{}" });
  expect([...taken(line)]).toEqual(["a", "b", "c"]);
  expect(line.shift()).toBeUndefined();
});
