import { createHash } from "node:crypto";
import { createRequire, stripTypeScriptTypes } from "node:module";
import { transformSync } from "esbuild";

/*
 * Jest transform that erases types, as Node does when it runs the same files. Lines and columns stay, so no source map
 * is needed. https://nodejs.org/api/module.html#modulestriptypescripttypescode-options
 * The console's components are compiled as its build does. The libraries that package.json names in `transform` are replaced
 * by those that environment.mjs shares between test files.
 */

const jsx = { loader: "tsx", jsx: "automatic", jsxImportSource: "preact", target: "esnext" };
const require = createRequire(import.meta.url);

/** @param isEsm otherwise the module is CommonJS */
function sharedModule(path, isEsm) {
  const shared = `requireShared(${JSON.stringify(path)})`;
  if (!isEsm) return `module.exports = ${shared};`;
  // Names such as `catch` can be exported, but not declared.
  const names = Object.entries(Object.keys(require(path)));
  const declared = names.map(([index, name]) => `${name}: export${index}`);
  return `const { ${declared} } = ${shared}; export { ${names.map(([index, name]) => `export${index} as ${name}`)} };`;
}

function compile(source, path, isEsm) {
  if (path.includes("/node_modules/")) return sharedModule(path, isEsm);
  return path.endsWith(".tsx") ? transformSync(source, jsx).code : stripTypeScriptTypes(source);
}

export default {
  process: (source, path, { supportsStaticESM }) => ({ code: compile(source, path, supportsStaticESM) }),
  getCacheKey: (source, path, { supportsStaticESM }) =>
    createHash("sha256").update(`${process.version} ${supportsStaticESM}`).update(path).update(source).digest("hex"),
};
