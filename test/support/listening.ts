import { once } from "node:events";
import http from "node:http";
import type net from "node:net";
import { closeAfterFile } from "./cleanup.ts";

/** Lets a server listen on a free port of this machine until the end of the test file. @returns its base URL */
export async function listening(server: net.Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeAfterFile(() => {
    server.close();
    if (server instanceof http.Server) server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}
