import { Readable } from "node:stream";

/** https://www.jsonrpc.org/specification#error_object */
const parseError = JSON.stringify({
  jsonrpc: "2.0",
  id: null,
  error: { code: -32700, message: "Parse error: the line is not JSON." },
});

/**
 * Passes on the lines of an input that are JSON, without blank ones. Responds to any other line with a parse error: the SDK
 * would drop it, and the client wait for a response.
 * @param respond writes one line to the client
 */
export function jsonLines(input: AsyncIterable<Buffer>, respond: (line: string) => void): Readable {
  async function* accepted(): AsyncGenerator<Buffer> {
    for await (const line of linesOf(input)) {
      if (isJson(line)) yield Buffer.from(`${line}\n`);
      else if (line.trim() !== "") respond(parseError);
    }
  }
  return Readable.from(accepted(), { objectMode: false });
}

async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of input) {
    const [first = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    rest += first;
    for (const line of lines) {
      yield rest;
      rest = line;
    }
  }
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
