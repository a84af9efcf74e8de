import { everyOption } from "./every-option.ts";
import { dev, type Json, Synthesised } from "./synthesised.ts";

const every = new Synthesised(everyOption);

function senders(stack: Synthesised): Record<string, Json[]> {
  const byQueue: Record<string, Json[]> = {};
  for (const { Properties } of stack.all("AWS::SQS::QueuePolicy")) {
    const name = stack.target(Properties.Queues[0]).Properties.QueueName;
    byQueue[name] = Properties.PolicyDocument.Statement.filter(({ Effect }: Json) => Effect === "Allow");
  }
  return byQueue;
}

test("by itself no queue lets anybody in", () => {
  expect(Object.values(senders(dev)).flat()).toEqual([]);
});

test("producers may send to the events queue, and to no other", () => {
  const { "every-deployment-events": events = [], ...others } = senders(every);
  expect(Object.values(others).flat()).toEqual([]);
  const allowed = events.map(({ Action, Principal, Condition }) => [
    Action,
    ...Object.values(Principal),
    Condition?.ArnEquals,
  ]);
  expect(allowed).toEqual([
    ["sqs:SendMessage", "arn:aws:iam::444455556666:role/deployments", undefined],
    ["sqs:SendMessage", "arn:aws:iam::777788889999:root", undefined],
    [
      "sqs:SendMessage",
      "events.amazonaws.com",
      { "aws:SourceArn": "arn:aws:events:eu-west-1:111122223333:rule/deployments" },
    ],
    ["sqs:SendMessage", "sns.amazonaws.com", { "aws:SourceArn": "arn:aws:sns:eu-west-1:111122223333:deployments" }],
  ]);
});

test("the platform's own table of projects takes the place of ours, and the functions may use just that", () => {
  expect(every.all("AWS::DynamoDB::Table").map(({ Properties }) => Properties.TableName)).not.toContain(
    "every-projects",
  );
  expect(every.template.Outputs.ProjectsTableName.Value).toBe("platform-projects");
  expect(every.functionFor("projects/list").Properties.Environment.Variables.PROJECTS_TABLE).toBe("platform-projects");
  const statements = every
    .all("AWS::IAM::Policy")
    .flatMap(({ Properties }) => Properties.PolicyDocument.Statement)
    .filter((statement: Json) => JSON.stringify(statement.Resource).includes("table/platform-projects"));
  const actions = new Set(statements.flatMap(({ Action }: Json) => Action));
  expect([...actions].sort()).toEqual(["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"]);
});
