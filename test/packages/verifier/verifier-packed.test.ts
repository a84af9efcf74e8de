import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { folder, install, machineNode, pack, userEnvironment } from "../../support/npm-pack.ts";
import { useService } from "../../support/service.ts";

/* The published verifier, installed from its tarball, on the Node of the machine: the example of its README, against the service. */

const root = join(import.meta.dirname, "../../..");
const project = join(folder, "project");
const service = useService();
let files: string[];

beforeAll(() => {
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"type":"module","private":true}');
  const packed = pack("packages/verifier");
  files = packed.files;
  install(packed.tarball, project);
  // That of a user, which cannot be installed offline.
  symlinkSync(join(root, "node_modules/@aws-sdk"), join(project, "node_modules/@aws-sdk"));
});

test("the tarball contains the module and its types, and has no dependencies", () => {
  expect(files).toEqual(["README.md", "dist/index.d.ts", "dist/index.js", "package.json"]);
  const installed = join(project, "node_modules/@deployment-webhooks/verifier");
  expect(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).dependencies).toBeUndefined();
});

test("the example returns the status of a rejection, and its process ends although the verifier is not closed", async () => {
  const readme = readFileSync(join(root, "packages/verifier/README.md"), "utf8");
  const [, example = ""] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
  const admin = service.user();
  const viewer = service.user();
  const projectId = await service.project(admin.userId);
  await service.project(viewer.userId, { projectId, role: "viewer" });
  const { data } = (await admin.api.post("/v1/api-keys", { name: "ci", permissions: ["keys:read"] })).body;
  const tokens = [admin.token, admin.token, viewer.token, data.key, service.user().token, "no.jwt"];
  const asked = example.replace("registry:push", "webhooks:write");
  const use = `for (const token of ${JSON.stringify(tokens)}) console.log(await rejectionOf(token, "${projectId}"));
lambda.send = () => Promise.reject(new Error("down"));
console.log(await rejectionOf("other", "${projectId}"));
console.log(process.getActiveResourcesInfo().filter((each) => each === "Timeout").join());`;
  writeFileSync(join(project, "use.js"), `${asked}\n${use}`);
  const env = {
    ...userEnvironment,
    AWS_ENDPOINT_URL_LAMBDA: service.baseUrl,
    NODE_NO_WARNINGS: "1",
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    VERIFY_FUNCTION: "credentials-verify",
    REVOCATIONS_FUNCTION: "credentials-revocations",
  };
  const child = spawn(machineNode, ["use.js"], { cwd: project, env, stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect({ code, statuses: output.split("\n") }).toEqual({
    code: 0,
    // The last line: no timer keeps the process running.
    statuses: ["undefined", "undefined", "403", "403", "404", "401", "503", "", ""],
  });
});

// A bundler resolves what Node resolves.
test("its types compile with the AWS SDK, as Node resolves them", () => {
  writeFileSync(
    join(project, "use.ts"),
    `import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { Verifier } from "@deployment-webhooks/verifier";
const lambda = new LambdaClient();
const verifier = new Verifier({
  invoke: (FunctionName, Payload, abortSignal) => lambda.send(new InvokeCommand({ FunctionName, Payload }), { abortSignal }),
  verifyFunction: "verify",
  revocationsFunction: "revocations",
});
export const userOf = async (token: string): Promise<string | undefined> => {
  const result = await verifier.verify(token, { projectId: "p" });
  return result.valid ? result.user_id : undefined;
};
// @ts-expect-error the functions are missing
export const wrong = () => new Verifier({ invoke: async () => ({}) });
`,
  );
  const compilerOptions = { noEmit: true, strict: true, skipLibCheck: true, target: "es2022", lib: ["es2023", "dom"] };
  const types = { types: [], module: "nodenext", moduleResolution: "nodenext" };
  const config = { compilerOptions: { ...compilerOptions, ...types }, files: ["use.ts"] };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  expect(execFileSync(process.execPath, [tsc, "--project", project], { encoding: "utf8" })).toBe("");
});
