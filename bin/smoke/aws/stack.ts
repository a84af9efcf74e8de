import { stackName } from "../../../lib/names.ts";
import { callCloudFormation, xmlValue } from "./api.ts";

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
  /** Address of the API, without a trailing slash; undefined = the stack has no such output. */
  apiUrl: string | undefined;
  resources: StackResource[];
}

/** Reads the stack of a stage. @throws AwsError when it does not exist or the credentials may not read it */
export async function readStack(stage: string): Promise<StageStack> {
  const StackName = stackName({ name: stage });
  const description = await callCloudFormation("DescribeStacks", { StackName });
  const resources: StackResource[] = [];
  let NextToken: string | undefined;
  do {
    const page = await callCloudFormation("ListStackResources", { StackName, ...(NextToken && { NextToken }) });
    resources.push(...resourcesIn(page));
    NextToken = xmlValue(page, "NextToken");
  } while (NextToken !== undefined);
  const isProtected = xmlValue(description, "EnableTerminationProtection") === "true";
  const [, apiOutput = ""] = /<OutputKey>ApiUrl<\/OutputKey>([\s\S]*?)<\/member>/.exec(description) ?? [];
  return { name: StackName, stage, isProtected, apiUrl: xmlValue(apiOutput, "OutputValue"), resources };
}

function resourcesIn(xml: string): StackResource[] {
  return [...xml.matchAll(/<member>([\s\S]*?)<\/member>/g)].flatMap(([, member = ""]) => {
    const type = xmlValue(member, "ResourceType");
    const logicalId = xmlValue(member, "LogicalResourceId");
    const name = xmlValue(member, "PhysicalResourceId");
    const isDeleted = xmlValue(member, "ResourceStatus") === "DELETE_COMPLETE";
    return type && logicalId && name && !isDeleted ? [{ type, logicalId, name }] : [];
  });
}

export const namesOf = ({ resources }: StageStack, type: string): string[] =>
  resources.filter((each) => each.type === type).map(({ name }) => name);

/**
 * Returns the name of the first resource of a type whose logical id begins with a text, as `part` in
 * docs/runbook/tools.sh does; undefined = there is none.
 */
export const nameOf = ({ resources }: StageStack, type: string, prefix: string): string | undefined =>
  resources.find((each) => each.type === type && each.logicalId.startsWith(prefix))?.name;
