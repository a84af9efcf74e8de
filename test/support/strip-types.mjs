import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";

/*
 * Jest transform that erases types, as Node does when it runs the same files. Lines and columns stay, so no source map
 * is needed. https://nodejs.org/api/module.html#modulestriptypescripttypescode-options
 */

export default {
  process: (source) => ({ code: stripTypeScriptTypes(source) }),
  getCacheKey: (source, path) => createHash("sha256").update(process.version).update(path).update(source).digest("hex"),
};
