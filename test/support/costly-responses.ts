import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { parseCidrs } from "../../functions/webhooks/receiver/receiver-address.ts";
import { createReceiverClient } from "../../functions/webhooks/receiver/receiver-client.ts";

/*
 * The CPU time that a response costs the sender, which also serves other tenants: for its test, and for a promise. The receiver
 * is a thread of its own, so that the time of this thread is that of the client.
 */

const repeated = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join("");
const fifteen = (value: string) => repeated(15, (n) => `x-${n}: ${value.slice(0, 990)}\r\n`);
const failure = (headers: string, body = "x") =>
  `HTTP/1.1 500 No\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (chunks: string, status = 200) => `HTTP/1.1 ${status} X\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
const redirect = (target: string) => failure("").replace("500 No\r\n", `302 Found\r\nLocation: ${target}\r\n`);
const earlyHints = (headers: number) => `HTTP/1.1 103 E\r\n${repeated(headers, (n) => `a${n}: b\r\n`)}\r\n`;

/** The most that a response may cost, in milliseconds. A plain one costs 0.3 on an idle machine. */
const USUAL_MS = 10;
/** Chunks of one byte that the client has already received are parsed, also after it has ended the request. */
const ONE_BYTE_CHUNKS_MS = 25;

const responses: [title: string, response: string, maxMs?: number][] = [
  ["a plain failure", failure("Server: nginx\r\n", "oops")],
  ["a page of HTML", failure("", "<p>signature not valid</p>".repeat(2_500))],
  ["colons after slashes in each header", failure(fifteen(`//${":".repeat(990)}`))],
  ["slashes and colons", failure(fifteen("//a:".repeat(250)))],
  ["beginnings of JWTs", failure(fifteen(`${"eyJ-".repeat(9)} `.repeat(40)))],
  ["schemes without credentials", failure(fifteen("bearer ".repeat(142)))],
  ["credentials that are cut", failure(fifteen(`${"basic ........".repeat(70)}"`))],
  ["names of credentials, and spaces", failure(fifteen(`${"keykeykeykeykeykeykey".padEnd(980)}x`))],
  ["words with underscores", failure(fifteen(`${"ab_".repeat(12)}.`.repeat(27)))],
  ["3,500 headers of the same name", failure("a: \r\n".repeat(3_500))],
  ["1,900 headers", failure(repeated(1_900, (n) => `a${n}: b\r\n`))],
  ["1,000 cookies", failure(repeated(1_000, (n) => `Set-Cookie: a=${n}\r\n`))],
  ["folded headers", failure(`a: b\r\n${" c\r\n".repeat(3_000)}`)],
  ["a long Retry-After", failure(`Retry-After: ${"9".repeat(15_000)}\r\n`)],
  ["a challenge of many schemes", failure(`WWW-Authenticate: ${"Basic,".repeat(2_500)}\r\n`)],
  ["a redirect to a long path", redirect("/..".repeat(5_000))],
  ["a redirect to a long host", redirect(`https://${"é.".repeat(3_000)}/`)],
  ["a redirect to Punycode", redirect(`https://xn--${"a-".repeat(7_000)}.com/`)],
  ["invalid UTF-8", failure("", "\xff".repeat(64_000))],
  ["a compressed body", failure("Content-Encoding: gzip\r\n", "\x1f\x8b".repeat(30_000))],
  ["an excerpt of random text", failure("", "0f4kQ8zL+/x1".repeat(100))],
  ["many 1xx responses with many headers", repeated(100, () => earlyHints(900)) + failure("")],
  ["1xx responses without headers", repeated(100, () => earlyHints(0)) + failure("")],
  ["3,600 1xx responses 100", "HTTP/1.1 100 C\r\n\r\n".repeat(3_600) + failure("")],
  ["3,400 1xx responses 102", "HTTP/1.1 102 C\r\n\r\n".repeat(3_400) + failure("")],
  ["3,600 1xx responses 199", "HTTP/1.1 199 C\r\n\r\n".repeat(3_600)],
  ["2,600 1xx responses 103 with a header", "HTTP/1.1 103 E\r\na: b\r\n\r\n".repeat(2_600) + failure("")],
  ["1xx responses with more headers than the limit", repeated(60, () => earlyHints(99)) + failure("")],
  ["trailers", chunked(`1\r\na\r\n0\r\n${repeated(1_500, (n) => `t${n}: a\r\n`)}\r\n`)],
  ["chunk extensions", chunked(`${"1;a=b\r\na\r\n".repeat(2_000)}0\r\n\r\n`)],
  ["long chunk extensions", chunked(`${`1;a=${"b".repeat(8_000)}\r\na\r\n`.repeat(10)}0\r\n\r\n`)],
  ["65,000 chunks of one byte", chunked(`${"1\r\na\r\n".repeat(65_000)}0\r\n\r\n`, 500), ONE_BYTE_CHUNKS_MS],
  ["65,000 chunks of one byte with a 200", chunked(`${"1\r\na\r\n".repeat(65_000)}0\r\n\r\n`), ONE_BYTE_CHUNKS_MS],
];

const server = `const { workerData, parentPort } = require("node:worker_threads");
require("node:net").createServer((socket) => socket.on("error", () => {}).on("data", (data) => {
  socket.write(Buffer.from(workerData[/POST .(\\d+)/.exec(data)[1]], "latin1"));
})).listen(0, "127.0.0.1", function () { parentPort.postMessage(this.address().port); });`;

const REQUESTS = 5;
const ROUNDS = 4;

/** The responses, and the most that each may cost. */
export const costlyResponses = responses.map(([title, , maxMs = USUAL_MS], index) => ({ title, maxMs, index }));

/** Starts the receiver. `costOf` returns the CPU time of a request in milliseconds: of the round that was disturbed least. */
export async function startCostlyReceiver() {
  // Without the program that ends a benchmark with its parent: it would end the thread at once, whose input is empty.
  const receiver = new Worker(server, {
    eval: true,
    execArgv: [],
    workerData: responses.map(([, response]) => response),
  });
  const [port] = await once(receiver, "message");
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]));
  return {
    async costOf(index: number): Promise<number> {
      const rounds: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const before = process.threadCpuUsage();
        for (let count = 0; count < REQUESTS; count++) await client.post(`http://127.0.0.1:${port}/${index}`, {}, "{}");
        const { user, system } = process.threadCpuUsage(before);
        rounds.push((user + system) / 1000 / REQUESTS);
      }
      return Math.min(...rounds);
    },
    end: () => Promise.all([client.close(), receiver.terminate()]),
  };
}
