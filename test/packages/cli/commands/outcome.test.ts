import { jest } from "@jest/globals";
import { certify } from "../../../../packages/cli/src/commands/certify.ts";
import { awaitOutcome } from "../../../../packages/cli/src/commands/outcome.ts";
import { tools } from "../../../../packages/cli/src/mcp/tools.ts";
import type { Client, Delivery } from "../../../../packages/client/src/client.ts";

/* How long commands wait for an outcome, with a stub of the client. */

const webhook = { projectId: "p-1", webhookId: "w-1" };
let noted: string;
/** Seconds since the start, each of which a response to a question took. */
let asked: number[];
/** The real time of each question, in milliseconds. */
let askedAt: number[];

beforeEach(() => {
  [noted, asked, askedAt] = ["", [], []];
  jest.spyOn(process.stdout, "write").mockReturnValue(true);
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    noted += text;
    return true;
  });
});
afterEach(() => {
  const pauses = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0));
  expect(pauses.filter((pause) => pause < 350)).toEqual([]);
  jest.restoreAllMocks();
  process.exitCode = undefined;
});

/** Returns a function of the API that always returns this after so many seconds. */
function slowly<Data>(seconds: number, data: Data) {
  const start = Date.now();
  let elapsed = 0;
  jest.spyOn(Date, "now").mockImplementation(() => start + elapsed * 1000);
  return async () => {
    elapsed += seconds;
    asked.push(elapsed);
    askedAt.push(performance.now());
    return data;
  };
}

test("an attempt is awaited for 30 seconds", async () => {
  const pending = { id: "d-1", status: "pending", attempt_count: 1, attempts: [] } as unknown as Delivery;
  const api = { getDelivery: slowly(10, pending) } as unknown as Client;
  await awaitOutcome(api, webhook, pending, true);
  expect([asked, process.exitCode]).toEqual([[10, 20, 30, 40], 1]);
  expect(noted).toContain("No attempt within 30 s.");
});

test.each([
  ["for 90 seconds", "running", [30, 60, 90]],
  ["until it is unfinished", "unfinished", [30]],
])("a certification is awaited %s", async (_, status, expected) => {
  const getCertification = slowly(30, { status });
  const api = { certifyWebhook: async () => ({ id: "c-1" }), getCertification } as unknown as Client;
  await expect(certify(api, webhook)).rejects.toThrow("The certification c-1 did not finish.");
  expect(asked).toEqual(expected);
});

test("the MCP tool certify_webhook returns a certification that runs after 50 seconds", async () => {
  const getCertification = slowly(25, { status: "running", checks: [] });
  const api = { certifyWebhook: async () => ({ id: "c-1" }), getCertification } as unknown as Client;
  const projectId = "0193f8a0-0000-7000-8000-000000000000";
  const certifyWebhook = tools.find(({ name }) => name === "certify_webhook");
  const input = { project: projectId, webhook_id: projectId };
  const { structured } = (await certifyWebhook?.run(api, input, { isOffered: () => true })) ?? {};
  expect([asked, structured]).toEqual([[25, 50, 75], { certification: { status: "running", checks: [] } }]);
});
