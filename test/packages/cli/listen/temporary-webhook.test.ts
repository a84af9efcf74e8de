import { jest } from "@jest/globals";
import { createTemporaryWebhook } from "../../../../packages/cli/src/listen/temporary-webhook.ts";
import type { Client } from "../../../../packages/client/src/client.ts";
import { NetworkError } from "../../../../packages/client/src/errors.ts";

afterEach(() => {
  jest.restoreAllMocks();
  process.exitCode = undefined;
});

test("a temporary webhook that cannot be deleted is named, with exit code 1", async () => {
  let noted = "";
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    noted += text;
    return true;
  });
  const api = {
    createWebhook: async () => ({ id: "w-1", secret: "whsec_1" }),
    deleteWebhook: () => Promise.reject(new NetworkError("Could not reach http://127.0.0.1:1 (ECONNREFUSED).")),
  } as unknown as Client;
  const webhook = { url: "http://127.0.0.1:2/", events: ["deploy.failed" as const] };
  const subscription = await createTemporaryWebhook(api, "p-1", webhook);
  expect(subscription.secrets).toEqual(["whsec_1"]);
  await subscription.end();
  expect(noted).toContain("(ECONNREFUSED). To delete it: svc webhooks delete w-1 --project p-1");
  expect(process.exitCode).toBe(1);
});
