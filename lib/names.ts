import type { Stage } from "./stage.ts";

/** Turns `api-keys/create` or `apiKeys` into the id of a construct, `ApiKeysCreate` or `ApiKeys`. */
export function constructId(name: string): string {
  return name.replaceAll(/(?:^|[-/])([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The name of a table or queue on AWS: stages may share an account. */
export function deployedName(stage: Pick<Stage, "name">, name: string): string {
  return `${stage.name}-${name}`;
}

/** The folder of a function's bundle: `api-keys/create` -> `api-keys-create`. */
export function bundleFolder(file: string): string {
  return file.replaceAll("/", "-");
}
