import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";
import { transformSync } from "esbuild";

/*
 * Jest transform that erases types, as Node does when it runs the same files. Lines and columns stay, so no source map
 * is needed. https://nodejs.org/api/module.html#modulestriptypescripttypescode-options
 * The console's components are compiled as its build does.
 */

const jsx = { loader: "tsx", jsx: "automatic", jsxImportSource: "preact", target: "esnext" };

export default {
  process: (source, path) => ({
    code: path.endsWith(".tsx") ? transformSync(source, jsx).code : stripTypeScriptTypes(source),
  }),
  getCacheKey: (source, path) => createHash("sha256").update(process.version).update(path).update(source).digest("hex"),
};
