import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { scriptCommand, startCommand } from "../../../bin/command/shell-commands.ts";

/* The commands that the programs print carry the settings that are not the defaults. */

const root = join(import.meta.dirname, "../../..");
const defaults = { dataDir: join(root, ".local"), port: 3000, sqsPort: 3001, isSecretGiven: false };

test("with default settings the commands have no assignments", () => {
  expect(startCommand(defaults)).toBe("npm start");
  expect(scriptCommand("demo", "", defaults)).toBe("npm run --silent demo");
  expect(scriptCommand("token", "--user u", defaults)).toBe("npm run --silent token -- --user u");
});

test("npm start gets the data directory and the ports, a script only the data directory", () => {
  const settings = { ...defaults, dataDir: "/srv/data", port: 8080, sqsPort: 0 };
  expect(startCommand(settings)).toBe("DATA_DIR=/srv/data PORT=8080 SQS_PORT=0 npm start");
  expect(startCommand({ ...defaults, port: 3001 })).toBe("PORT=3001 npm start");
  expect(startCommand({ ...defaults, sqsPort: 3000 })).toBe("SQS_PORT=3000 npm start");
  expect(scriptCommand("event", "--project p", settings)).toBe(
    "DATA_DIR=/srv/data npm run --silent event -- --project p",
  );
});

test("a data directory inside the project is relative to it, where npm runs scripts", () => {
  expect(startCommand({ ...defaults, dataDir: join(root, "data/one") })).toBe("DATA_DIR=data/one npm start");
  expect(startCommand({ ...defaults, dataDir: root })).toBe(`DATA_DIR=${root} npm start`);
});

test("scripts that sign tokens need JWT_SECRET when it was given, and the command does not show it", () => {
  const settings = { ...defaults, isSecretGiven: true };
  for (const script of ["token", "demo"] as const) {
    const command = scriptCommand(script, "", settings);
    expect(command).toMatch(/^JWT_SECRET="\$\{JWT_SECRET:\?[\w ]+\}" npm run --silent /);
  }
  expect(scriptCommand("event", "", settings)).toBe("npm run --silent event");
  const inShell = (env: NodeJS.ProcessEnv) =>
    execFileSync("sh", ["-c", scriptCommand("token", "", settings).replace(/npm .*/, "env")], {
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
  expect(inShell({ PATH: process.env.PATH, JWT_SECRET: "a b" })).toContain("JWT_SECRET=a b\n");
  expect(() => inShell({ PATH: process.env.PATH })).toThrow("Command failed");
});

test.each(["/tmp/my data", "/tmp/'it's'", "/tmp/$HOME;ls", '/tmp/"x"'])("a shell reads the path %s back", (dataDir) => {
  const command = startCommand({ ...defaults, dataDir }).replace("npm start", "sh -c 'printf %s \"$DATA_DIR\"'");
  expect(execFileSync("sh", ["-c", command], { encoding: "utf8" })).toBe(dataDir);
});
