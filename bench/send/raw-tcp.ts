import net from "node:net";
import { headersOf } from "./ours.ts";
import { BODY, type Way } from "./way.ts";

/*
 * The limit: our signatures in a request written by hand, over kept connections, to receivers of which it is known what they
 * answer. Nothing is parsed.
 */

const ANSWER = /^HTTP\/1\.1 (\d{3})[\s\S]*\r\n\r\nok$/;

/** Open connections with nothing on their way, by host and port. */
const idle = new Map<string, net.Socket[]>();

export const way: Way = {
  send(delivery) {
    const { host, hostname, port, pathname } = new URL(delivery.target.url);
    const lines = Object.entries(headersOf(delivery)).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = `Content-Length: ${Buffer.byteLength(BODY)}\r\n`;
    const request = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${length}${lines.join("")}\r\n${BODY}`;
    const sockets = idle.get(host) ?? [];
    idle.set(host, sockets);
    const socket =
      sockets.pop() ?? net.connect({ host: hostname, port: Number(port), noDelay: true }).setEncoding("utf8");
    return new Promise((resolve) => {
      let answer = "";
      const end = (isTaken: boolean) => {
        socket.removeAllListeners("data").removeAllListeners("error");
        resolve(isTaken);
      };
      socket.on("data", (text) => {
        answer += text;
        const [, status] = ANSWER.exec(answer) ?? [];
        if (status === undefined) return;
        sockets.push(socket);
        end(status === "200");
      });
      socket.on("error", () => end(false));
      socket.write(request);
    });
  },
};
