import type { Stack } from "aws-cdk-lib";
import type { Stage } from "./stage.ts";

/** Returns the id of a construct: `api-keys-provision` -> `ApiKeysProvision`, `createApiKey` -> `CreateApiKey`. */
export function constructId(name: string): string {
  return name.replaceAll(/(?:^|[-/])([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the name of something that exists once per account and not once per region. */
export function globalName(stack: Stack): string {
  return `${stack.stackName}-${stack.region}`;
}

export const SERVICE = "deployment-webhooks";

/** Returns the name of a stage's stack. */
export function stackName(stage: Pick<Stage, "name">): string {
  return `${SERVICE}-${stage.name}`;
}

/**
 * Returns the name of a table or queue on AWS: with the service, because other services in the account have projects
 * and events too, and with the stage, because stages may share an account. In a local run names have no prefix.
 */
export function deployedName(stage: Pick<Stage, "name">, name: string): string {
  return `${stackName(stage)}-${name}`;
}
