import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Service {
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  projectId: string;
  end(): Promise<void>;
}

/** `npm start`'s program as a process of its own, over fresh data that goes when it ends. */
export async function startService(settings: Record<string, string> = {}): Promise<Service> {
  const { PATH, HOME } = process.env;
  const DATA_DIR = mkdtempSync(join(tmpdir(), "bench-"));
  const child = spawn(process.execPath, ["bin/local.ts"], {
    cwd: join(import.meta.dirname, ".."),
    env: { PATH, HOME, DATA_DIR, PORT: "0", SQS_PORT: "0", ...settings },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  let page = "";
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    page += text;
    if (/^ready .*$/m.test(page)) break;
  }
  const find = (pattern: RegExp) => pattern.exec(page)?.[1] ?? "";
  return {
    baseUrl: find(/^ready (\S+)$/m),
    eventsQueueUrl: find(/events queue +(\S+)/),
    token: find(/TOKEN=(\S+)/),
    projectId: find(/project +(\S+)/),
    async end() {
      child.kill("SIGKILL");
      await ended;
      rmSync(DATA_DIR, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
