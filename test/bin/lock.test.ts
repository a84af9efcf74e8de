import { readFileSync } from "node:fs";
import { join } from "node:path";
import { completed, type LockedPackages, missingPackages } from "../../bin/commands/lock.ts";

test("package-lock.json lists the optional packages of all platforms, which npm ci requires: npm run lock adds them", () => {
  const lock: { packages: LockedPackages } = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../package-lock.json"), "utf8"),
  );
  const names = Object.keys(lock.packages);
  expect(Object.keys(completed(lock.packages))).toEqual(names);
  const { "node_modules/@biomejs/cli-linux-x64": _, ...incomplete } = lock.packages;
  expect(Object.keys(completed(incomplete))).toEqual(names);
});

test("an entry has the platform that the package's name contains, and is for development unless the project needs it", () => {
  const version = "1.2.3";
  const [darwin, musl, gnu] = ["@a/darwin-arm64", "@a/b-linux-arm-musleabihf", "@a/b-linux-x64-gnu"] as const;
  const optionalDependencies = { [darwin]: version, [musl]: version, [gnu]: version };
  const project = { optionalDependencies: { [darwin]: version } };
  expect(missingPackages({ "": project, "node_modules/b": { dev: true, optionalDependencies } })).toEqual({
    [`node_modules/${darwin}`]: { version, optional: true, os: ["darwin"], cpu: ["arm64"] },
    [`node_modules/${musl}`]: { version, dev: true, optional: true, os: ["linux"], cpu: ["arm"], libc: ["musl"] },
    [`node_modules/${gnu}`]: { version, dev: true, optional: true, os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
  });
});

test("a package is found next to its dependent, and in each folder above", () => {
  const optionalDependencies = { "c-linux-x64": "1.0.0" };
  const dependent = "node_modules/a/node_modules/@b/b";
  const missingBeside = (place: string) =>
    Object.keys(missingPackages({ [dependent]: { optionalDependencies }, [place]: {} }));
  expect(missingBeside(`${dependent}/node_modules/c-linux-x64`)).toEqual([]);
  expect(missingBeside("node_modules/a/node_modules/c-linux-x64")).toEqual([]);
  expect(missingBeside("node_modules/c-linux-x64")).toEqual([]);
  expect(missingBeside("node_modules/d/node_modules/c-linux-x64")).toEqual(["node_modules/c-linux-x64"]);
});

test("a package without an exact version, or without a platform in its name, is an error that names it", () => {
  const missing = (name: string, range: string) => () =>
    missingPackages({ "": { optionalDependencies: { [name]: range } } });
  expect(missing("a-linux-x64", "^1.0.0")).toThrow("No entry for a-linux-x64@^1.0.0");
  expect(missing("a-wasm32", "1.0.0")).toThrow("No entry for a-wasm32@1.0.0");
});
