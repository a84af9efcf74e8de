import { randomUUID } from "node:crypto";
import type http from "node:http";
import { type WorkerRow, workerRows } from "../../functions/foundation/manifest/workers.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { parseJson } from "../../functions/foundation/platform/parse-json.ts";
import { invoke, LambdaTimeout, type LoadHandler } from "./lambda.ts";
import { isFromWebPage } from "./queue-engine.ts";
import { readBody } from "./read-body.ts";

/*
 * The Invoke operation of the Lambda API in a local run, for the functions that the platform invokes under IAM. An AWS SDK
 * calls it when `AWS_ENDPOINT_URL_LAMBDA` is the address of the API. Credentials and signatures are not checked.
 * https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
 */

const PATH = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
const MAX_PAYLOAD_BYTES = 6 * 1024 * 1024;

interface InvokeResponse {
  status: number;
  headers?: Record<string, string>;
  /** Absent = an empty body. */
  body?: unknown;
}

/**
 * Creates the part of the gateway that responds to Invoke. Loads its handlers, so that a broken one stops the start.
 * @returns a function that returns false, without a response, for any other request
 */
export async function createInvokeApi(
  load: LoadHandler,
): Promise<(request: http.IncomingMessage, response: http.ServerResponse) => boolean> {
  const invocable = (workerRows as readonly WorkerRow[]).filter(({ trigger }) => trigger.kind === "invoke");
  const functions = new Map(
    await Promise.all(invocable.map(async (row) => [row.id, { row, handler: await load(row.id) }] as const)),
  );

  async function respond(name: string, request: http.IncomingMessage): Promise<InvokeResponse> {
    const body = await readBody(request, MAX_PAYLOAD_BYTES);
    const { "x-amz-invocation-type": type = "RequestResponse" } = request.headers;
    if (isFromWebPage(request)) {
      return refusal(403, "AccessDeniedException", "Web pages cannot invoke functions. Use an AWS SDK.");
    }
    const found = functions.get(name);
    if (found === undefined) {
      const known = [...functions.keys()].join(", ");
      return refusal(404, "ResourceNotFoundException", `Function not found: ${name}. The local run has: ${known}.`);
    }
    if (body === undefined) {
      return refusal(413, "RequestTooLargeException", `The payload is larger than ${MAX_PAYLOAD_BYTES} bytes.`);
    }
    if (type !== "RequestResponse") {
      const message = `The local run supports the invocation type RequestResponse, not ${String(type)}.`;
      return refusal(400, "InvalidParameterValueException", message);
    }
    const payload = parseJson(body || "{}");
    if (payload === undefined) {
      return refusal(400, "InvalidRequestContentException", "Could not parse the request body as JSON.");
    }
    const { row, handler } = found;
    try {
      const lambda = { functionName: row.id, timeoutSeconds: row.timeoutSeconds };
      return { status: 200, body: (await invoke(handler, payload, lambda)) ?? null };
    } catch (error) {
      logSink.write("error", { message: `${row.id} failed: ${String(error)}` });
      return { status: 200, headers: { "X-Amz-Function-Error": "Unhandled" }, body: functionError(error) };
    }
  }

  return (request, response) => {
    const name = PATH.exec(request.url?.split("?")[0] ?? "")?.[1];
    if (name === undefined || request.method !== "POST") return false;
    respond(name, request).then(
      ({ status, headers, body }) =>
        response
          .writeHead(status, {
            "Content-Type": "application/json",
            "x-amzn-RequestId": randomUUID(),
            "X-Amz-Executed-Version": "$LATEST",
            ...headers,
          })
          .end(JSON.stringify(body)),
      // The client disconnected while sending.
      () => response.destroy(),
    );
    return true;
  };
}

const refusal = (status: number, type: string, message: string): InvokeResponse => ({
  status,
  headers: { "X-Amzn-Errortype": type },
  body: { Type: "User", Message: message },
});

/** Returns what the runtime of Lambda reports about an error, without the stack trace. */
function functionError(error: unknown): { errorType: string; errorMessage: string } {
  if (error instanceof LambdaTimeout) return { errorType: "Sandbox.Timedout", errorMessage: error.message };
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { errorType: name, errorMessage: message };
}
