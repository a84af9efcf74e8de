import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type * as esbuild from "esbuild";

interface Stub {
  /** End of its path below `node_modules`. */
  module: string;
  /** Returns the source that the bundles get instead. */
  replacement(source: string): string;
}

/*
 * Modules of packages that no function can reach, each with its size in KB in one bundle. Together they would be two fifths of
 * an endpoint's bundle. Only the bundles replace them; local runs and tests load the packages unchanged.
 */
const stubs: Stub[] = [
  {
    // 130: sign-in with SSO, STS, profiles, processes and metadata servers, each with its client. Lambda hands a function its
    // credentials in environment variables, once for the life of the process.
    module: "@aws-sdk/credential-provider-node/dist-es/index.js",
    replacement: () => 'export { fromEnv as defaultProvider } from "@aws-sdk/credential-provider-env";',
  },
  {
    // 3, and 6 % of the CPU of a cold start: settings in files of a home directory.
    module: "@smithy/core/dist-es/submodules/config/shared-ini-file-loader/loadSharedConfigFiles.js",
    replacement: () => `
      export { CONFIG_PREFIX_SEPARATOR } from "./constants";
      export const loadSharedConfigFiles = async () => ({ configFile: {}, credentialsFile: {} });`,
  },
  {
    // 25: event streams, which none of the operations in use returns.
    module: "@smithy/core/dist-es/submodules/event-streams/index.js",
    replacement: () => "export {};",
  },
  {
    // 8: endpoint discovery, which no DynamoDB operation requires.
    module: "@aws-sdk/endpoint-cache/dist-es/index.js",
    replacement: () => "export class EndpointCache {}",
  },
  {
    // 3: SHA-256 in JavaScript, for a Node without it.
    module: "@smithy/core/dist-es/submodules/checksum/sha256/Sha256Js.js",
    replacement: () => "export class Sha256Js {}",
  },
  {
    // 28: version comparison. jsonwebtoken checks that this Node is newer than 6.12, 15.7 and 16.9.
    module: "semver/index.js",
    replacement: () => "exports.satisfies = () => true;",
  },
  {
    // 10, with seven lodash modules: signing. Functions only verify tokens.
    module: "jsonwebtoken/sign.js",
    replacement: () => "",
  },
  {
    // 150: Ajv, with which the SDK of MCP checks what a tool returns against a schema. No tool has one.
    module: "@modelcontextprotocol/server/dist/shimsNode.mjs",
    replacement: () => "export class DefaultJsonSchemaValidator {}",
  },
  {
    // 2 for each client, which reads only its version.
    module: "package.json",
    replacement: (source) => JSON.stringify({ version: JSON.parse(source).version }),
  },
];

const isModule = (path: string, { module }: Stub) =>
  path.includes("node_modules/") && path.replaceAll("\\", "/").endsWith(`/${module}`);

export const stubModules: esbuild.Plugin = {
  name: "bundle-stubs",
  setup(build) {
    build.onLoad({ filter: /node_modules/ }, async ({ path }) => {
      const row = stubs.find((each) => isModule(path, each));
      if (!row) return undefined;
      const contents = row.replacement(await readFile(path, "utf8"));
      return { contents, loader: path.endsWith(".json") ? "json" : "js", resolveDir: dirname(path) };
    });
  },
};

/**
 * Checks that each stub still replaces something.
 * @throws Error that names the modules which no bundle imports
 */
export function checkStubs({ inputs }: esbuild.Metafile): void {
  const paths = Object.keys(inputs);
  const unused = stubs.filter((row) => !paths.some((path) => isModule(path, row))).map(({ module }) => module);
  if (unused.length > 0)
    throw new Error(`bin/build/bundle-stubs.ts names modules that no bundle imports: ${unused.join(", ")}`);
}
