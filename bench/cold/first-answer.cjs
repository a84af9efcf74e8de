/*
 * A Lambda's first call, in a process of its own: loads a bundle, calls its handler, notes what the process has used up to
 * the end of the first answer of DynamoDB, and sees the call through.
 *
 *     node first-answer.cjs <bundle> <event in JSON>
 *
 * Prints {cpuMs, wallMs, loaded, result} in the last line.
 */
const { subscribe } = require("node:diagnostics_channel");

const [bundle, event] = process.argv.slice(2);
let atFirstAnswer;

subscribe("http.client.response.finish", ({ request, response }) => {
  if (atFirstAnswer || !request.getHeader("x-amz-target")?.startsWith("DynamoDB_")) return;
  response.once("end", () => {
    const { user, system } = process.cpuUsage();
    atFirstAnswer ??= { cpuMs: (user + system) / 1000, wallMs: performance.now() };
  });
});

const context = {
  functionName: "bench",
  awsRequestId: "bench",
  invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:bench",
  getRemainingTimeInMillis: () => 10_000,
};

async function main() {
  // As the runtime does it: what is CommonJS is required, and only what is ESM pays for the loader of ESM.
  const { handler } = bundle.endsWith(".mjs") ? await import(bundle) : require(bundle);
  const result = await handler(JSON.parse(event), context);
  const loaded = process.moduleLoadList.map((name) => name.replace("NativeModule ", ""));
  process.stdout.write(`\n${JSON.stringify({ ...atFirstAnswer, loaded, result })}\n`, () => process.exit());
}

main();
