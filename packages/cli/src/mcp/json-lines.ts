import { Readable } from "node:stream";

/** https://www.jsonrpc.org/specification#error_object */
const errorLine = (code: number, message: string, id: unknown = null) =>
  JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });

/**
 * Passes on the JSON-RPC messages of an input, one per line. Responds to any other line with an error: the SDK would drop it, and the
 * client wait for a response. The messages of a batch, which protocol 2025-03-26 has, are passed on and answered one by one.
 * @param respond writes one line to the client
 */
export function jsonLines(input: AsyncIterable<Buffer>, respond: (line: string) => void): Readable {
  async function* accepted(): AsyncGenerator<Buffer> {
    for await (const line of linesOf(input)) {
      const parsed = parse(line);
      if (parsed === undefined) {
        if (line.trim() !== "") respond(errorLine(-32700, "Parse error: the line is not JSON."));
        continue;
      }
      const isBatch = Array.isArray(parsed) && parsed.length > 0;
      for (const message of isBatch ? parsed : [parsed]) {
        if (isMessage(message)) yield Buffer.from(`${isBatch ? JSON.stringify(message) : line}\n`);
        else respond(invalidRequest(message));
      }
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
  // The last line may have no end.
  yield rest + decoder.decode();
}

/** @returns undefined for a text that is not JSON */
function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): boolean => Object(value) === value && !Array.isArray(value);

/** MCP allows neither null nor fractions. */
const isId = (id: unknown): boolean => typeof id === "string" || Number.isSafeInteger(id);

/** https://modelcontextprotocol.io/specification/2025-11-25/basic */
function isMessage(message: unknown): boolean {
  const { jsonrpc, id, method, params = {}, result, error } = Object(message);
  const isCall = typeof method === "string" && isObject(params) && (id === undefined || isId(id));
  const isResponse = method === undefined && isId(id) && (isObject(result) || isObject(error));
  return jsonrpc === "2.0" && (isCall || isResponse);
}

function invalidRequest(message: unknown): string {
  const { id } = Object(message);
  const text =
    'Invalid request: a message has jsonrpc "2.0", a method, no id that is null, and no params but an object.';
  return errorLine(-32600, text, isId(id) ? id : null);
}
