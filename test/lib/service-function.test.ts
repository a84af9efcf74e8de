import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code } from "aws-cdk-lib/aws-lambda";
import { createQueues } from "../../lib/queues.ts";
import { ServiceFunction } from "../../lib/service-function.ts";
import { stageNamed } from "../../lib/stages.ts";
import { createTables } from "../../lib/tables.ts";

test("the caller's environment wins, and a name without a value is left out", () => {
  const stage = stageNamed("dev");
  const stack = new Stack(new App(), "test");
  const data = { tables: createTables(stack, stage), queues: createQueues(stack, stage) };
  const { lambda } = new ServiceFunction(
    stack,
    { stage, data, code: () => Code.fromInline("//") },
    {
      file: "projects/list",
      description: "",
      uses: { tables: { projects: ["Query"] } },
      timeoutSeconds: 10,
      memoryMb: 512,
      environment: { PROJECTS_TABLE: "another", LIMIT: "5", NOTHING: undefined },
    },
  );
  const id = stack.getLogicalId(lambda.node.defaultChild as never);
  const { Variables } = Template.fromStack(stack).toJSON().Resources[id].Properties.Environment;
  expect(Variables).toEqual({ STAGE: "dev", PROJECTS_TABLE: "another", LIMIT: "5" });
});
