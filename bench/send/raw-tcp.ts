import net from "node:net";
import { headersOf } from "./ours.ts";
import { BODY, type Way } from "./way.ts";

/*
 * The lower bound: our signatures in a hand-written request over keep-alive connections, without an HTTP parser. The response of
 * the receivers is known.
 */

const RESPONSE = /^HTTP\/1\.1 (\d{3})[\s\S]*\r\n\r\nok$/;

/** Idle connections by host and port. */
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
      let received = "";
      const end = (isAccepted: boolean) => {
        socket.removeAllListeners("data").removeAllListeners("error");
        resolve(isAccepted);
      };
      socket.on("data", (text) => {
        received += text;
        const [, status] = RESPONSE.exec(received) ?? [];
        if (status === undefined) return;
        sockets.push(socket);
        end(status === "200");
      });
      socket.on("error", () => end(false));
      socket.write(request);
    });
  },
};
