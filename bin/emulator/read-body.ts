import type http from "node:http";

/**
 * Reads a request's body to its end, so that the client finishes sending and reads the response.
 * @returns undefined when the body is larger than `maxBytes`
 * @throws Error when the client disconnects
 */
export async function readBody(request: http.IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
  }
  return bytes > maxBytes ? undefined : Buffer.concat(chunks).toString("utf8");
}
