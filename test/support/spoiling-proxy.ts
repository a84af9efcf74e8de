import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";

export interface Asked {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface Answered {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** What goes wrong between a client and a service that is well. Both change what they are given. */
export interface Spoil {
  request?(asked: Asked): void | Promise<void>;
  /** Returns "cut" to break the connection off in place of the answer. */
  answer?(answered: Answered, asked: Asked): void | "cut" | Promise<void>;
  /** Answers in place of the service. */
  instead?(asked: Asked): Answered | undefined;
}

export interface SpoilingProxy {
  url: string;
  asked: Asked[];
  close(): Promise<void>;
}

/** Stands in front of a service and spoils what passes: a service that breaks a promise, and only that one. */
export async function startSpoilingProxy(
  baseUrl: string,
  spoil: Spoil = {},
  tls?: { cert: string; key: string },
): Promise<SpoilingProxy> {
  const asked: Asked[] = [];
  const onRequest = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const { authorization, "content-type": contentType } = request.headers;
      const one: Asked = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: { ...(authorization && { authorization }), ...(contentType && { "content-type": contentType }) },
        body: Buffer.concat(chunks).toString("utf8"),
      };
      asked.push({ ...one });
      const answer = spoil.instead?.(one) ?? (await forward(baseUrl, one, spoil));
      if ((await spoil.answer?.(answer, one)) === "cut") return void response.destroy();
      response.writeHead(answer.status, answer.headers).end(answer.body);
    } catch {
      response.destroy();
    }
  };
  const server = tls ? https.createServer(tls, onRequest) : http.createServer(onRequest);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function forward(baseUrl: string, asked: Asked, spoil: Spoil): Promise<Answered> {
  await spoil.request?.(asked);
  const { method, path, headers, body } = asked;
  const response = await fetch(`${baseUrl}${path}`, { method, headers, ...(body !== "" && { body }) });
  const {
    connection: _,
    "keep-alive": __,
    "transfer-encoding": ___,
    "content-length": ____,
    ...kept
  } = Object.fromEntries(response.headers);
  return { status: response.status, headers: kept, body: await response.text() };
}
