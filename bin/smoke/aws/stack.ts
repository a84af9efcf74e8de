import { DescribeStacksCommand, paginateListStackResources } from "@aws-sdk/client-cloudformation";
import { stackName } from "../../../lib/names.ts";
import { cloudFormation } from "./clients.ts";

/* The resources of a stage's stack, with the names that CloudFormation gave them. */

export interface StackResource {
  /** Such as `AWS::Lambda::Function`. */
  type: string;
  logicalId: string;
  /** Physical id: the name of a function, the ARN of an alias, the UUID of an event source mapping. */
  name: string;
}

export interface StageStack {
  name: string;
  stage: string;
  /** Termination protection is on: the stage keeps its data. */
  isProtected: boolean;
  resources: StackResource[];
}

/** Reads the stack of a stage. @throws AwsError when it does not exist or the credentials may not read it */
export async function readStack(stage: string): Promise<StageStack> {
  const StackName = stackName({ name: stage });
  const { Stacks: [stack] = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName }));
  const resources: StackResource[] = [];
  for await (const page of paginateListStackResources({ client: cloudFormation }, { StackName })) {
    for (const { ResourceType, LogicalResourceId, PhysicalResourceId, ResourceStatus } of page.StackResourceSummaries ??
      []) {
      if (!ResourceType || !LogicalResourceId || !PhysicalResourceId || ResourceStatus === "DELETE_COMPLETE") continue;
      resources.push({ type: ResourceType, logicalId: LogicalResourceId, name: PhysicalResourceId });
    }
  }
  const isProtected = stack?.EnableTerminationProtection === true;
  return { name: StackName, stage, isProtected, resources };
}

export const namesOf = ({ resources }: StageStack, type: string): string[] =>
  resources.filter((each) => each.type === type).map(({ name }) => name);

/**
 * Returns the name of the first resource of a type whose logical id begins with a text, as `part` in
 * docs/runbook/tools.sh does; undefined = there is none.
 */
export const nameOf = ({ resources }: StageStack, type: string, prefix: string): string | undefined =>
  resources.find((each) => each.type === type && each.logicalId.startsWith(prefix))?.name;
