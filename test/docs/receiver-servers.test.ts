import { spawn, spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probes } from "../../functions/deliveries/certification/certification.ts";
import { probeRequests } from "../../functions/deliveries/certification/probe-requests.ts";
import { signatureHeaders } from "../../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../../functions/webhooks/webhook/webhook.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { needs, type Program } from "../support/optional-program.ts";

/* The receivers of docs/receivers that are whole programs, each in its language. */

const receivers = join(import.meta.dirname, "../../docs/receivers");
const work = mkdtempSync(join(tmpdir(), "servers-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const secret = generateSecret(randomBytes(32));
const body = JSON.stringify({
  event: "deploy.failed",
  project_id: randomUUID(),
  deployment_id: randomUUID(),
  timestamp: "2026-11-21T04:04:29.027Z",
  data: { reason: "Grüße 🚀" },
});

interface Server {
  language: string;
  program: string | Program;
  /** Its folder is a copy of that of the language. */
  command(port: number): string[];
  prepare?(folder: string): void;
}

const goEnv = { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local", GOWORK: "off" };

function prepareGo(folder: string): void {
  mkdirSync(join(folder, "webhook"));
  copyFileSync(join(folder, "server/main.go"), join(folder, "main.go"));
  copyFileSync(join(folder, "verify_webhook.go"), join(folder, "webhook/verify_webhook.go"));
  rmSync(join(folder, "verify_webhook.go"));
  rmSync(join(folder, "server"), { recursive: true });
  writeFileSync(join(folder, "go.mod"), "module receiver\n\ngo 1.18\n");
}

const hasWebrick = spawnSync("ruby", ["-e", "require 'webrick'"], { stdio: "ignore" }).status === 0;

const servers: Server[] = [
  { language: "python", program: "python3", command: () => ["python3", "server.py"] },
  { language: "ruby", program: { name: "webrick", isInstalled: hasWebrick }, command: () => ["ruby", "server.rb"] },
  { language: "php", program: "php", command: (port) => ["php", "-S", `127.0.0.1:${port}`, "server.php"] },
  {
    language: "go",
    program: "go",
    command: () => ["./receiver"],
    prepare(folder) {
      prepareGo(folder);
      expect(String(spawnSync("go", ["build", "-o", "receiver", "."], { cwd: folder, env: goEnv }).stderr)).toBe("");
    },
  },
];

/** Starts a server in a folder, and waits until it responds. */
async function startServer(folder: string, command: Server["command"], more: Record<string, string> = {}) {
  const port = await freePort();
  const [file = "", ...args] = command(port);
  const env = {
    PATH: process.env.PATH,
    HOME: work,
    PORT: String(port),
    WEBHOOK_SECRET: ` ${secret}  ${secret}x `,
    ...more,
  };
  const server = spawn(file, args, { cwd: folder, env });
  let printed = "";
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (data) => (printed += String(data)));
  const url = `http://127.0.0.1:${port}/`;
  const stop = () => server.kill("SIGKILL");
  try {
    await eventually(async () => expect((await fetch(url)).status).toBeGreaterThan(400));
  } catch (error) {
    stop();
    throw error;
  }
  return {
    printed: () => printed,
    send: async (text: string, headers: Record<string, string>) =>
      (await fetch(url, { method: "POST", body: text, headers })).status,
    stop,
  };
}

const signed = (deliveryId: string, text = body, at = new Date()) =>
  signatureHeaders({ deliveryId, at, body: text }, secret);

describe.each(servers)("the server in $language", ({ language, program, command, prepare }) => {
  needs(program).test(
    "stores each delivery once, and refuses what is not authentic",
    async () => {
      const folder = join(work, language);
      cpSync(join(receivers, language), folder, { recursive: true });
      prepare?.(folder);
      const { send, printed, stop } = await startServer(folder, command);
      try {
        const ids = [randomUUID(), randomUUID()];
        for (const id of [ids[0], ids[0], ids[1], ids[0]]) expect(await send(body, signed(String(id)))).toBe(204);
        await eventually(() =>
          expect(printed().match(/deploy\.failed [\w-]{36}/g)).toEqual(ids.map((id) => `deploy.failed ${id}`)),
        );
        expect(await send(`${body} `, signed(randomUUID()))).toBe(401);
        expect(await send(body, {})).toBe(401);
        expect(await send("", signed(randomUUID()))).toBe(401);
        expect(await send(body, signed(randomUUID(), body, new Date(Date.now() - 600_000)))).toBe(401);
        expect(await send("{", signed(randomUUID(), "{"))).toBe(400);
        expect(await send("x".repeat(1_000_000), {})).toBe(401);
        // A server may close the connection before it has read the rest.
        expect(await send("x".repeat(1_000_001), {}).catch(() => 413)).toBe(413);
        const requests = probeRequests({
          certificationId: randomUUID(),
          webhook: { project_id: randomUUID(), events: ["deploy.failed"] },
          secrets: [secret],
          foreignSecret: generateSecret(randomBytes(32)),
          now: new Date(),
          randomId: randomUUID,
        });
        const answers = [];
        for (const probe of probes) answers.push(await send(requests[probe].body, requests[probe].headers));
        expect(answers).toEqual([204, 204, 204, 401, 401, 401]);
        expect(printed().match(/deploy\./g)).toHaveLength(2);
      } finally {
        stop();
      }
    },
    60_000,
  );
});

/** Fails the work of a delivery with `fails`. */
const failures: Partial<Record<string, string>> = {
  "server.py": 'if "fails" in payload["data"]: raise RuntimeError("no" + " work")',
  "server.rb": 'raise ["no", "work"].join(" ") if payload["data"]["fails"]',
};

describe.each(servers.filter(({ language }) => /python|ruby/.test(language)))(
  "the server in $language",
  ({ language, program, command }) => {
    needs(program).test("processes a delivery again after its work failed, and forgets the oldest ids", async () => {
      const folder = join(work, `${language}-failing`);
      cpSync(join(receivers, language), folder, { recursive: true });
      const name = String(command(0).at(-1));
      const source = readFileSync(join(folder, name), "utf8").replace("MAX_IDS = 10_000", "MAX_IDS = 2");
      const failing = source.replace(/^( *)(?=.*# your work$)/m, `$1${failures[name]}\n$1`);
      writeFileSync(join(folder, name), failing);
      const { send, printed, stop } = await startServer(folder, command);
      const processed = () => printed().match(/(?<=deploy\.failed )[\w-]{36}|no work/g) ?? [];
      const [a, b, c, d, e] = Array.from({ length: 5 }, () => randomUUID()) as [string, string, string, string, string];
      const expected: string[] = [];
      const process = async (id: string, text: string, ...result: string[]) => {
        expected.push(...result);
        expect(await send(text, signed(id, text))).toBe(204);
        await eventually(() => expect(processed()).toEqual(expected));
      };
      try {
        const fails = JSON.stringify({ ...JSON.parse(body), data: { fails: true } });
        for (let count = 0; count < 2; count++) await process(a, fails, "no work");
        for (const id of [b, c, d, b]) await process(id, body, id);
        await process(d, body);
        await process(e, body, e);
      } finally {
        stop();
      }
    });
  },
);

needs("php").describe("the server in php, with a delivery that it cannot store,", () => {
  // Any 2xx would end the retries of a delivery that was not stored.
  test.each([
    ["the settings of the machine", []],
    ["no php.ini, so that PHP writes warnings into the response", ["-n"]],
  ])("responds 500 with %s", async (_, options) => {
    const inbox = join(work, "no-folder");
    writeFileSync(inbox, "");
    const command = (port: number) => ["php", ...options, "-S", `127.0.0.1:${port}`, "server.php"];
    const { send, stop } = await startServer(join(receivers, "php"), command, { INBOX: inbox });
    try {
      expect(await send(body, signed(randomUUID()))).toBe(500);
    } finally {
      stop();
    }
  });
});

needs("go").test(
  "the server in go accepts a delivery that it refused while its queue was full, and forgets the oldest ids",
  () => {
    const folder = join(work, "go-queue");
    cpSync(join(receivers, "go"), folder, { recursive: true });
    prepareGo(folder);
    copyFileSync(join(import.meta.dirname, "receivers/server_test.go"), join(folder, "main_test.go"));
    const { status, stdout } = spawnSync("go", ["test", "."], { cwd: folder, env: goEnv, encoding: "utf8" });
    expect([status, stdout]).toEqual([0, expect.stringContaining("ok")]);
  },
  60_000,
);
