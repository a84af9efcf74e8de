import type { Stage } from "./stage.ts";

/** Returns the id of a construct: `api-keys/create` -> `ApiKeysCreate`, `apiKeys` -> `ApiKeys`. */
export function constructId(name: string): string {
  return name.replaceAll(/(?:^|[-/])([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the name of a table or queue on AWS, with its stage, because stages may share an account. */
export function deployedName(stage: Pick<Stage, "name">, name: string): string {
  return `${stage.name}-${name}`;
}

/** Returns the folder of a function's bundle: `api-keys/create` -> `api-keys-create`. */
export function bundleFolder(file: string): string {
  return file.replaceAll("/", "-");
}
