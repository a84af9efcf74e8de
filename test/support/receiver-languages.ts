import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Vector } from "./vectors.ts";

/* The receivers of docs/receivers in other languages. Each verifies all vectors in one run of its interpreter. */

const root = join(import.meta.dirname, "../..");
const receivers = join(root, "docs/receivers");

export interface ReceiverLanguage {
  name: string;
  /** The program that a test needs. */
  program: string;
  /** Returns a line for each vector: `verified`, then id, event and whether it is a test (not in the shell), or the code of the error. */
  run(vectors: Vector[]): string[];
}

const driver = (extension: string) => join(root, "test/docs/receivers", `vectors.${extension}`);

/** @param work a folder for files */
export function receiverLanguages(work: string): ReceiverLanguage[] {
  const language = (
    name: string,
    program: string,
    args: (file: string) => string[],
    options: { cwd?: string; env?: NodeJS.ProcessEnv; prepare?: () => void } = {},
  ): ReceiverLanguage => ({
    name,
    program,
    run(vectors) {
      const file = join(work, "checked-vectors.json");
      writeFileSync(file, JSON.stringify({ vectors }));
      const { prepare, ...rest } = options;
      prepare?.();
      return execFileSync(program, args(file), { encoding: "utf8", ...rest })
        .trimEnd()
        .split("\n");
    },
  });
  const script = (extension: string, folder: string) => (file: string) => [
    driver(extension),
    join(receivers, folder),
    file,
  ];
  const prepare = () => {
    mkdirSync(join(work, "go/webhook"), { recursive: true });
    writeFileSync(join(work, "go/go.mod"), "module vectors\n\ngo 1.18\n");
    copyFileSync(driver("go"), join(work, "go/main.go"));
    copyFileSync(join(receivers, "go/verify_webhook.go"), join(work, "go/webhook/verify_webhook.go"));
  };
  const env = { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local", GOWORK: "off" };
  return [
    language("Python", "python3", script("py", "python")),
    language("Ruby", "ruby", script("rb", "ruby")),
    language("PHP", "php", script("php", "php")),
    language("Go", "go", (file) => ["run", ".", file], { cwd: join(work, "go"), env, prepare }),
    { name: "the shell", program: "openssl", run: (vectors) => vectors.map((vector) => runInShell(vector, work)) },
  ];
}

function runInShell(vector: Vector, work: string): string {
  const file = join(work, "body.json");
  writeFileSync(file, vector.body);
  const header = (name: string) =>
    Object.entries(vector.headers).find(([each]) => each.toLowerCase() === name)?.[1] ?? "";
  const names =
    vector.scheme === "standard"
      ? ["webhook-id", "webhook-timestamp", "webhook-signature"]
      : ["x-service-signature", "x-service-signature-previous"];
  const { stdout, stderr, status } = runReceiverInShell([vector.scheme, file, ...names.map(header)], {
    WEBHOOK_SECRET: vector.secrets.join(" "),
    NOW: String(vector.now),
  });
  expect([stderr, status]).toEqual(["", vector.valid ? 0 : 1]);
  return stdout.trim();
}

export function runReceiverInShell(args: string[], env: Record<string, string>) {
  const script = join(receivers, "shell/verify-webhook.sh");
  return spawnSync("/bin/sh", [script, ...args], { encoding: "utf8", env: { PATH: process.env.PATH, ...env } });
}
