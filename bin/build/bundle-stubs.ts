import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type * as esbuild from "esbuild";

interface Stub {
  /** The end of its path below `node_modules`. */
  module: string;
  /** What the bundles get instead. */
  instead(source: string): string;
}

/*
 * What packages bring along and no function can reach, with what it weighed in KB in one bundle. All of it together is two
 * fifths of an endpoint's bundle. The sources say nothing of this: outside the bundles the packages are what they are.
 */
const stubs: Stub[] = [
  {
    // 130: sign-in with SSO, STS, profiles, processes and metadata servers, each with its client. Lambda hands a function its
    // credentials in environment variables, once for the life of the process.
    module: "@aws-sdk/credential-provider-node/dist-es/index.js",
    instead: () => 'export { fromEnv as defaultProvider } from "@aws-sdk/credential-provider-env";',
  },
  {
    // 3, and 6 % of the CPU of a cold start, which looks for them: settings in files of a home directory.
    module: "@smithy/core/dist-es/submodules/config/shared-ini-file-loader/loadSharedConfigFiles.js",
    instead: () => `
      export { CONFIG_PREFIX_SEPARATOR } from "./constants";
      export const loadSharedConfigFiles = async () => ({ configFile: {}, credentialsFile: {} });`,
  },
  {
    // 25: no operation of ours streams events.
    module: "@smithy/core/dist-es/submodules/event-streams/index.js",
    instead: () => "export {};",
  },
  {
    // 8: endpoint discovery, which no DynamoDB operation asks for.
    module: "@aws-sdk/endpoint-cache/dist-es/index.js",
    instead: () => "export class EndpointCache {}",
  },
  {
    // 28: jsonwebtoken asks it whether this Node is younger than 6.12, 15.7 and 16.9.
    module: "semver/index.js",
    instead: () => "exports.satisfies = () => true;",
  },
  {
    // 10, with seven pieces of lodash: functions verify tokens and make none.
    module: "jsonwebtoken/sign.js",
    instead: () => "",
  },
  {
    // 2 for each client, which wants to know its version.
    module: "package.json",
    instead: (source) => JSON.stringify({ version: JSON.parse(source).version }),
  },
];

const isModule = (path: string, { module }: Stub) =>
  path.includes("node_modules/") && path.replaceAll("\\", "/").endsWith(`/${module}`);

export const stubModules: esbuild.Plugin = {
  name: "leave-out",
  setup(build) {
    build.onLoad({ filter: /node_modules/ }, async ({ path }) => {
      const row = stubs.find((each) => isModule(path, each));
      if (!row) return undefined;
      const contents = row.instead(await readFile(path, "utf8"));
      return { contents, loader: path.endsWith(".json") ? "json" : "js", resolveDir: dirname(path) };
    });
  },
};

/** @throws Error that names the modules which no bundle imports any more: their rows would leave out nothing */
export function checkStubs({ inputs }: esbuild.Metafile): void {
  const paths = Object.keys(inputs);
  const idle = stubs.filter((row) => !paths.some((path) => isModule(path, row))).map(({ module }) => module);
  if (idle.length > 0)
    throw new Error(`bin/build/bundle-stubs.ts names modules that no bundle imports: ${idle.join(", ")}`);
}
