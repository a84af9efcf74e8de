import { setTimeout as sleep } from "node:timers/promises";
import { jest } from "@jest/globals";
import { signInByCode } from "../../../../packages/cli/src/commands/sign-in.ts";
import type { Client } from "../../../../packages/client/src/client.ts";
import { ApiError } from "../../../../packages/client/src/errors.ts";
import { send, useService } from "../../../support/service.ts";

/* `svc login`: this machine shows a code, and waits for a person. */

const service = useService();
const printed: string[] = [];
beforeEach(() => {
  printed.splice(0);
  jest.spyOn(process.stderr, "write").mockImplementation((text) => printed.push(String(text)) > 0);
});
afterEach(() => void jest.restoreAllMocks());

const noWait = async () => {};

type Answer = Awaited<ReturnType<Client["requestSignIn"]>> | Error;

/** Answers one question after the other. */
function clientWith(answers: Answer[]): Client {
  const started = { status: "pending", device_code: "d", user_code: "BCDF-GHJK", verification_uri: null, interval: 7 };
  const left = [started as Answer, ...answers];
  return {
    async requestSignIn() {
      const answer = left.shift() ?? new Error("asked too often");
      if (answer instanceof Error) throw answer;
      return answer;
    },
  } as unknown as Client;
}

test("gets the key that a person approves, from the service", async () => {
  const person = service.user();
  const api = {
    requestSignIn: async (body: object) => {
      const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      return (await send(`${service.baseUrl}/v1/sign-ins`, request)).body.data;
    },
  } as unknown as Client;
  const signedIn = signInByCode(api, () => sleep(4_200));
  while (printed.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  const user_code = /code {2}(\S+) {2}there/.exec(printed.join(""))?.[1];
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const decided = await person.api.patch("/v1/sign-ins", {
    user_code,
    decision: "approve",
    name: "laptop",
    expires_at,
  });
  expect(decided.status).toBe(200);
  expect((await service.as(await signedIn).get("/v1/projects")).status).toBe(200);
});

test("asks again until the request is decided, also while the service is busy", async () => {
  const busy = new ApiError(503, { code: "service_unavailable", message: "busy" } as never);
  const key = { key: "svc_1" } as never;
  const answers: Answer[] = [{ status: "pending" }, busy, { status: "approved", api_key: key }];
  expect(await signInByCode(clientWith(answers), noWait)).toBe("svc_1");
  expect(printed.join("")).toContain("open the console of your platform");
});

test("waits for the interval of the service before each question, and five seconds longer after each slow_down", async () => {
  const waits: number[] = [];
  const approved = { status: "approved", api_key: { key: "svc_1" } } as Answer;
  const slowDown: Answer = { status: "slow_down" };
  const api = clientWith([{ status: "pending" }, slowDown, { status: "pending" }, slowDown, approved]);
  await signInByCode(api, async (ms) => void waits.push(ms));
  expect(waits).toEqual([7_000, 7_000, 12_000, 12_000, 17_000]);
});

test.each([
  ["denied", "The sign-in was denied"],
  ["expired", "The code has expired"],
] as const)("ends with what to do when it is %s", async (status, message) => {
  await expect(signInByCode(clientWith([{ status }]), noWait)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringContaining(message),
    advice: expect.stringContaining("svc login --with-token"),
  });
});
