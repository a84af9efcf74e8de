import { readFileSync } from "node:fs";
import { join } from "node:path";

/* Every error response that a test receives from the API has a code that docs/openapi.json lists for the operation. */

// biome-ignore lint/suspicious/noExplicitAny: any JSON
type Json = any;

const document: Json = JSON.parse(readFileSync(join(import.meta.dirname, "../../docs/openapi.json"), "utf8"));

const paths = Object.entries<Json>(document.paths).map(([path, operations]) => ({
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  operations,
}));

/** @throws Error when the operation exists and does not list the code. An unknown path or method is not checked. */
export function expectDocumentedCode(method: string, url: string, code: string): void {
  const { pathname } = new URL(url);
  const operation = paths.find(({ pattern }) => pattern.test(pathname))?.operations[method.toLowerCase()];
  if (operation === undefined) return;
  const codes = Object.values<Json>(operation.responses).flatMap(({ $ref }) =>
    $ref ? Object.keys(document.components.responses[$ref.split("/").at(-1)].content["application/json"].examples) : [],
  );
  if (codes.includes(code)) return;
  throw new Error(
    `${method} ${pathname} returned ${code}, which ${operation.operationId} does not list. ` +
      "Add it to its `errors` in contract/operations.ts, then run npm run openapi.",
  );
}
