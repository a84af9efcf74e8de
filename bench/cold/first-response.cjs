/*
 * Simulates the first call of a Lambda in its own process: loads a bundle, calls its handler, and records the CPU time until the
 * end of the first DynamoDB response.
 *
 *     node first-response.cjs <bundle> <event as JSON>
 *
 * Prints {cpuMs, loaded, result} in the last line, when the call has ended.
 */
const { subscribe } = require("node:diagnostics_channel");

const [bundle, event] = process.argv.slice(2);
let atFirstResponse;

subscribe("http.client.response.finish", ({ request, response }) => {
  if (atFirstResponse || !request.getHeader("x-amz-target")?.startsWith("DynamoDB_")) return;
  response.once("end", () => {
    const { user, system } = process.cpuUsage();
    atFirstResponse ??= { cpuMs: (user + system) / 1000 };
  });
});

const context = {
  functionName: "bench",
  awsRequestId: "bench",
  invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:bench",
  // A sender begins no attempt with less than 35 s left.
  getRemainingTimeInMillis: () => 60_000,
};

async function main() {
  const { handler } = require(bundle);
  const result = await handler(JSON.parse(event), context);
  const loaded = process.moduleLoadList.map((name) => name.replace("NativeModule ", ""));
  process.stdout.write(`\n${JSON.stringify({ ...atFirstResponse, loaded, result })}\n`, () => process.exit());
}

void main();
