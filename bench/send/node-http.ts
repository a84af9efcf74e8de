import http from "node:http";
import { headersOf } from "./ours.ts";
import { BODY, type Way } from "./way.ts";

/* Plain node:http with keep-alive and our signatures: no address check, no deadline, no response limit. */

const agent = new http.Agent({ keepAlive: true });

export const way: Way = {
  send(delivery) {
    return new Promise((resolve) => {
      const headers = { ...headersOf(delivery), "Content-Length": Buffer.byteLength(BODY) };
      const request = http.request(delivery.target.url, { agent, method: "POST", headers });
      request.on("response", (response) => {
        response.resume().on("end", () => resolve(response.statusCode === 200));
      });
      request.on("error", () => resolve(false));
      request.end(BODY);
    });
  },
};
