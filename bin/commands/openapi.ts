import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { openApiDocument } from "../openapi/document.ts";
import { reference } from "../openapi/reference.ts";

const root = join(import.meta.dirname, "../..");

/** Everything that is made from the endpoints' rows and schemas, by path. The same sources make the same text. */
export async function generate(): Promise<Map<string, string>> {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const document = await openApiDocument(version);
  return new Map([
    ["docs/openapi.json", formatted("docs/openapi.json", JSON.stringify(document))],
    ["docs/api.md", reference(document)],
    ["packages/client/src/schema.d.ts", formatted("packages/client/src/schema.d.ts", await typesOf(document))],
  ]);
}

async function typesOf(document: object): Promise<string> {
  const types = astToString(await openapiTS(structuredClone(document) as never, { alphabetize: false }));
  return `// Made by npm run openapi.\n// biome-ignore-all lint: nobody writes it.\n${types}`;
}

/** As the linter wants all files to be. */
function formatted(path: string, text: string): string {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  const args = [biome, "format", `--stdin-file-path=${path}`];
  return execFileSync(process.execPath, args, { cwd: root, input: text, encoding: "utf8" });
}

export async function main(): Promise<void> {
  for (const [path, text] of await generate()) {
    writeFileSync(join(root, path), text);
    console.log(`${path} ${(Buffer.byteLength(text) / 1024).toFixed(0)} KB`);
  }
}
