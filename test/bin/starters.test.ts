import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandHere } from "../support/command-here.ts";

/* `bin/run.cjs` starts every program with any Node, and every program explains itself. */

const root = join(import.meta.dirname, "../..");
const bin = join(root, "bin");
const programs = readdirSync(join(bin, "commands")).map((name) => name.replace(/\.ts$/, ""));
const scratch = mkdtempSync(join(tmpdir(), "starters-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Makes this Node behave like one that cannot run TypeScript. */
const AS_OLD_NODE = "--no-strip-types";

function runNode(args: string[], { cwd = root, env = {} as Record<string, string> } = {}) {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const options = {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE, DATA_DIR: scratch, ...env },
    encoding: "utf8",
  } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
  return { status, stdout, stderr };
}

test("every npm script that starts a program finds it, and prints nothing of its own", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const named = [...JSON.stringify(scripts).matchAll(/\bbin\/run\.cjs (\w+)/g)].map(([, name = ""]) => name);
  // The CDK starts the other one.
  expect([...named, "app"].sort()).toEqual(programs);
  const { app } = JSON.parse(readFileSync(join(root, "cdk.json"), "utf8"));
  expect(app).toBe("node_modules/.bin/node bin/run.cjs app");
});

test.each([
  { failing: "", exit: 0 },
  { failing: "project", exit: 2 },
  { failing: "packages/console", exit: 2 },
  { failing: "project packages/console", exit: 2 },
])(
  "npm run types checks all programs in one run, and exits with $exit if '$failing' has errors",
  ({ failing, exit }) => {
    const folder = mkdtempSync(join(scratch, "types-"));
    const checked = `case "$*" in *" -p "*) name=\${*##* -p };; *) name=project;; esac; echo "$name"`;
    writeFileSync(join(folder, "tsc"), `#!/bin/sh\n${checked}\ncase " $FAILING " in *" $name "*) exit 2;; esac\n`, {
      mode: 0o755,
    });
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const env = { PATH: `${folder}:${process.env.PATH}`, FAILING: failing };
    const { status, stdout } = spawnSync("sh", ["-c", scripts.types], { env, encoding: "utf8" });
    expect([status, stdout.trim().split("\n").sort()]).toEqual([exit, ["packages/console", "project"]]);
  },
);

test.each([[[]], [["nope"]], [["../command/command"]]])(
  "without the name of a program, as in %j, lists them",
  (args) => {
    const stderr = `Pass the name of a program: ${programs.join(", ")}.\n`;
    expect(runNode(["bin/run.cjs", ...args])).toEqual({ status: 2, stdout: "", stderr });
  },
);

describe("a Node that cannot run TypeScript", () => {
  test("hands over to the project's own Node, with arguments, output and exit code", () => {
    const ok = runNode([AS_OLD_NODE, "bin/run.cjs", "token", "--user", "alice"]);
    expect(ok).toEqual({ status: 0, stdout: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/), stderr: "" });
    const wrong = runNode([AS_OLD_NODE, join(bin, "run.cjs"), "token", "--usr"], { cwd: tmpdir() });
    expect(wrong).toEqual({ status: 2, stdout: "", stderr: expect.stringMatching(/^Unknown option '--usr'\./) });
  });

  test("does so from bin/local.ts too, by its own name and by that of a link to the folder", () => {
    const link = join(scratch, "link");
    symlinkSync(root, link);
    for (const path of ["bin/local.ts", join(link, "bin/local.ts")]) {
      const { status, stdout } = runNode([AS_OLD_NODE, path, "--help"]);
      expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining("Usage: npm start") });
    }
  });

  test.each([
    [[], /^The packages are not installed\. Run npm install first\.\n$/],
    [["node_modules"], /^Node \d+\.\d+\.\d+ cannot run this program, .+ Run npm install again, or use Node 24\.\n$/],
  ])("prints one sentence with the fix when the project has only the folders %j", (folders, message) => {
    const project = mkdtempSync(join(scratch, "project-"));
    mkdirSync(join(project, "bin"));
    copyFileSync(join(bin, "run.cjs"), join(project, "bin/run.cjs"));
    symlinkSync("run.cjs", join(project, "bin/local.ts"));
    cpSync(join(bin, "commands"), join(project, "bin/commands"), { recursive: true });
    copyFileSync(join(root, "package.json"), join(project, "package.json"));
    for (const name of folders) mkdirSync(join(project, name));
    for (const args of [["bin/local.ts"], ["bin/run.cjs", "token"]]) {
      const { status, stdout, stderr } = runNode([AS_OLD_NODE, ...args], { cwd: project });
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
      expect(stderr).toMatch(message);
    }
  });
});

const optionsByProgram: Record<string, string[]> = {
  local: ["PORT", "SQS_PORT", "DATA_DIR", "WEBHOOK_ALLOW_CIDRS", "default: 3000", "default: .local"],
  demo: ["verified delivery"],
  console: ["--user <id>", "(default: demo-user)", "DATA_DIR"],
  issuer: ["--port <port>", "(default: 4999)", "DATA_DIR"],
  openapi: ["docs/openapi.json"],
  token: ["--user <id>", "--expires-in <seconds>", "(default: 3600)", "(required)"],
  project: ["--user <id>", "--name <name>", "--id <uuid>", "--role admin|viewer", "(default: admin)", "(required)"],
  invoke: ["<function> <json>", "projects-suspend\n", "--stage <stage on AWS>"],
  event: ["--project <uuid>", "--event <name>", "--deployment <uuid>", "--url <url>", "deploy.succeeded"],
  dlq: ["list|redrive", "--queue deployment-events|deliveries", "--stage <stage on AWS>"],
  build: ["dist/"],
  engines: ["<engine>", "moto "],
};

test.each(Object.entries(optionsByProgram))("%s --help shows usage, options and examples", async (name, shown) => {
  const long = await commandHere(name, ["--help"], {});
  expect(long).toMatchObject({ code: 0, stderr: "" });
  for (const text of ["Usage: npm ", "-h, --help", "Examples:\n", ...shown]) expect(long.stdout).toContain(text);
  expect(Math.max(...long.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(140);
});

describe("app, which the CDK starts,", () => {
  test("shows with --help how to run it", () => {
    const { status, stdout, stderr } = runNode(["bin/run.cjs", "app", "--help"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("Run through `npx cdk synth|diff|deploy -c stage=<name>`");
    expect(stdout).toContain("\nUsage: npx cdk synth|diff|deploy -c stage=<name>");
  });

  test("with an unknown stage prints one sentence and builds nothing", () => {
    const CDK_CONTEXT_JSON = '{"stage":"nope"}';
    const stderr = 'No stage named "nope". Known stages: dev, prod. Choose one with -c stage=<name>.\n';
    const project = mkdtempSync(join(scratch, "unbuilt-"));
    for (const name of ["bin", "contract", "lib", "functions", "packages"]) {
      cpSync(join(root, name), join(project, name), { recursive: true });
    }
    for (const name of ["package.json", "tsconfig.json"]) copyFileSync(join(root, name), join(project, name));
    symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
    const finished = runNode([join(project, "bin/run.cjs"), "app"], { cwd: project, env: { CDK_CONTEXT_JSON } });
    expect(finished).toEqual({ status: 1, stdout: "", stderr });
    expect(existsSync(join(project, "dist"))).toBe(false);
  });
});

test("-h is --help, also beside an unknown option", async () => {
  const help = await commandHere("token", ["--help"], {});
  expect(await commandHere("token", ["--no-such-option", "-h"], {})).toEqual(help);
});

test.each([
  ["local", "--prot", "Unknown option '--prot'."],
  ["demo", "now", "Unexpected argument: every value needs an option."],
  ["build", "--outdir=x", "Unknown option '--outdir'."],
  ["openapi", "--check", "Unknown option '--check'."],
  ["engines", "nope", "Pass the name of one engine, which --help lists."],
])("%s rejects %s and shows its usage", async (name, arg, message) => {
  const { code, stdout, stderr } = await commandHere(name, [arg], {});
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/\nUsage: npm .*\nOptions and settings: npm .* --help\n$/);
  expect(stderr.split("\n")[0]).toBe(message);
});
