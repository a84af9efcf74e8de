import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { sampleFields } from "../../functions/foundation/events/sample-event.ts";
import { createClient } from "../../packages/client/src/client.ts";
import { mintToken } from "../command/mint-token.ts";
import { sendEvent } from "../command/send-event.ts";
import { readSettings } from "../command/settings.ts";
import { StartError } from "../command/start-error.ts";
import { demoUser, seedDemoUser } from "../demo/demo-user.ts";
import { fromSources } from "../emulator/lambda.ts";
import { logToFile } from "../emulator/log-file.ts";
import { startService } from "../emulator/service.ts";
import { type Engine, until } from "./engine.ts";

export const engine: Engine = {
  summary: "20,000 deliveries through DNS and TLS to nginx and Python's server, while nginx replaces its workers",
  programs: ["nginx", "dnsmasq", "openssl", "python3"],
  install: "apt-get install nginx-light dnsmasq-base openssl python3",
  async run() {
    const counts = await deliver({ batches: 50, size: 50 }, async (batch, nginx) => {
      // Two processors deliver about as fast.
      await sleep(4_000);
      if (batch % 9 === 0) nginx.kill("SIGHUP");
    });
    requireExact(counts, 0);
  },
};

const DNS_PORT = 8_600;
const PYTHON_PORT = 8_601;
const nginxPort = (server: number) => 8_602 + server;

const ok = 'location / { return 200 "ok"; }';
/** Lines of a `server` of nginx. */
const servers = [
  `keepalive_requests 10; ${ok}`,
  `keepalive_timeout 1s; ${ok}`,
  `keepalive_timeout 0; ${ok}`,
  `ssl_protocols TLSv1.2; ${ok}`,
  `ssl_protocols TLSv1.3; ${ok}`,
  "location / { return 204; }",
  "error_page 405 =200 $uri; rewrite ^ /large break;",
  `limit_rate 1k; location / { return 200 "${"x".repeat(3_000)}"; }`,
];

const nginxConfig = (folder: string, lines: readonly string[]) => `user root; daemon off; pid ${folder}/pid;
events {}
http {
  log_format requests $http_x_service_delivery; access_log ${folder}/log requests;
  root ${folder}; ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(" ")}
  ${lines.join("\n  ")}
}`;

/** Speaks HTTP/1.0. */
const pythonServer = `
import sys, http.server as http
class Handler(http.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        with open(sys.argv[2], "a") as log: log.write(self.headers["x-service-delivery"] + "\\n")
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
http.ThreadingHTTPServer.request_queue_size = 128
http.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()`;

/**
 * Starts the receivers until the end of this process. They append the delivery id of each request to `log`.
 * @returns nginx
 */
function startReceivers(folder: string): ChildProcess {
  const at = (name: string) => join(folder, name);
  const certificate = "req -x509 -newkey rsa:2048 -nodes -subj /CN=engines -addext subjectAltName=DNS:*.receivers.test";
  const files = ["-keyout", at("key.pem"), "-out", at("cert.pem")];
  execFileSync("openssl", [...certificate.split(" "), ...files], { stdio: "ignore" });
  process.env.NODE_EXTRA_CA_CERTS = at("cert.pem");
  // As that variable does for a process that starts with it.
  setDefaultCACertificates([...getCACertificates("default"), readFileSync(at("cert.pem"), "utf8")]);
  process.env.DNS_SERVERS = `127.0.0.1:${DNS_PORT}`;
  const listeners = servers.map((lines, index) => `server { listen 127.0.0.1:${nginxPort(index)} ssl; ${lines} }`);
  writeFileSync(at("nginx.conf"), nginxConfig(folder, listeners));
  writeFileSync(at("large"), "x".repeat(1_000_000));
  writeFileSync(at("log"), "");
  const start = (command: string, ...more: string[]) => {
    const [program = "", ...args] = [...command.split(" "), ...more];
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
    process.once("exit", () => child.kill());
    child.unref();
    return child;
  };
  start(`dnsmasq -k -R -h -z -C /dev/null -a 127.0.0.1 -p ${DNS_PORT} -A /receivers.test/127.0.0.1`);
  start("python3 -c", pythonServer, String(PYTHON_PORT), at("log"));
  return start(`nginx -p ${folder} -c ${at("nginx.conf")} -e ${at("errors")}`);
}

export interface Counts {
  deliveries: number;
  failed: number;
  /** Repeated requests that the attempts do not explain: a sender that crashes records none. */
  unexplained: number;
}

/** @throws StartError after a failed attempt, or too many unexplained requests: the receivers do not fail */
export function requireExact({ failed, unexplained }: Counts, crashes: number): void {
  if (failed > 0 || unexplained > crashes) throw new StartError("The counts are wrong.");
}

/**
 * Sends events to a local run, each of which all receivers get, and counts lost deliveries and repeated requests.
 * @param after runs after each batch of events
 * @param load loads the handlers
 * @throws StartError when a delivery is lost
 */
export async function deliver(
  { batches, size }: { batches: number; size: number },
  after: (batch: number, nginx: ChildProcess) => Promise<void>,
  load = fromSources,
): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), "engines-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const nginx = startReceivers(folder);
  logToFile(folder);
  const settings = readSettings({ DATA_DIR: folder, PORT: "0", SQS_PORT: "0" });
  const { baseUrl, eventsQueueUrl, stop } = await startService(settings, { load });
  try {
    await seedDemoUser();
    const { projectId, userId } = demoUser;
    const client = createClient({ baseUrl, token: mintToken(settings.jwtSecret, userId) });
    const urls = servers.map((_, index) => `https://r${index}.receivers.test:${nginxPort(index)}/`);
    for (const url of [...urls, `http://127.0.0.1:${PYTHON_PORT}/`]) {
      await client.createWebhook(projectId, { url, events: ["deploy.started"] });
    }
    for (let batch = 1; batch <= batches; batch++) {
      for (let sent = 0; sent < size; sent++) {
        const event = sampleFields("deploy.started", { projectId, id: randomUUID(), now: new Date() });
        await sendEvent(eventsQueueUrl, event);
      }
      await after(batch, nginx);
    }
    const deliveries = batches * size * (urls.length + 1);
    const received = () =>
      Map.groupBy(readFileSync(join(folder, "log"), "latin1").split("\n").slice(0, -1), (id) => id);
    await until("last delivery", 600, () => received().size >= deliveries);
    // The last attempt is recorded after the response.
    await sleep(2_000);
    const requestsOf = received();
    const counts = { deliveries, lost: deliveries, failed: 0, repeated: 0, unexplained: 0 };
    const listed = client.eachProjectDelivery(projectId, { limit: 100 });
    for await (const { id, webhook_id: webhookId, status, attempt_count } of listed) {
      const { length: requests } = requestsOf.get(id) ?? [];
      if (status === "succeeded" && requests > 0) counts.lost -= 1;
      counts.failed += attempt_count - 1;
      if (requests < 2) continue;
      const { attempts } = await client.getDelivery({ projectId, webhookId }, id);
      const logged = attempts.reduce((sum, { request_count = 1 }) => sum + request_count, 0);
      counts.repeated += requests - 1;
      counts.unexplained += Math.max(0, requests - logged);
    }
    console.log(JSON.stringify(counts));
    if (counts.lost > 0) throw new StartError("Deliveries are lost.");
    return counts;
  } finally {
    await stop();
  }
}
