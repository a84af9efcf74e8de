import {
  DescribeStacksCommand,
  paginateListStackResources,
  type StackResourceSummary,
} from "@aws-sdk/client-cloudformation";
import { stackName } from "../../../lib/names.ts";
import { cloudFormation } from "./clients.ts";

/* The resources of a stage's stack, with the names that CloudFormation gave them. */

export interface StageStack {
  name: string;
  stage: string;
  /** Termination protection is on: the stage keeps its data. */
  isProtected: boolean;
  resources: StackResourceSummary[];
}

/** Reads the stack of a stage. @throws AwsError when it does not exist or the credentials may not read it */
export async function readStack(stage: string): Promise<StageStack> {
  const name = stackName({ name: stage });
  const { Stacks: [stack] = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName: name }));
  const resources: StackResourceSummary[] = [];
  for await (const page of paginateListStackResources({ client: cloudFormation }, { StackName: name })) {
    resources.push(...(page.StackResourceSummaries ?? []));
  }
  const isProtected = stack?.EnableTerminationProtection === true;
  return { name, stage, isProtected, resources: resources.filter((each) => each.ResourceStatus !== "DELETE_COMPLETE") };
}

/** Returns the physical ids: the name of a function or an alarm, the ARN of an alias. */
export const namesOf = ({ resources }: StageStack, type: string): string[] =>
  resources.flatMap((each) => (each.ResourceType === type ? (each.PhysicalResourceId ?? []) : []));

/**
 * Returns the name of the first resource of a type whose logical id begins with a text, as `part` in
 * docs/runbook/tools.sh does; undefined = there is none.
 */
export const nameOf = ({ resources }: StageStack, type: string, prefix: string): string | undefined =>
  resources.find((each) => each.ResourceType === type && each.LogicalResourceId?.startsWith(prefix))
    ?.PhysicalResourceId;
