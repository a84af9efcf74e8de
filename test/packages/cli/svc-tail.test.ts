import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { useReceiver } from "../../support/receiver.ts";
import { type Api, useService } from "../../support/service.ts";
import { type Running, startSvc } from "../../support/svc.ts";

/* `svc deliveries tail` against the real service. */

process.env.RETRY_SCHEDULE = "2";
const service = useService({ deliver: true });
const receiver = useReceiver();
let api: Api;
let token: string;
let projectId: string;

beforeEach(async () => {
  const user = service.user();
  ({ api, token } = user);
  projectId = await service.project(user.userId);
  receiver.respondWith(200);
});

const running: Running[] = [];
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill("SIGKILL");
});

async function newWebhook(): Promise<string> {
  const body = { url: receiver.url, events: ["deploy.started"] };
  return (await api.post(`/v1/projects/${projectId}/webhooks`, body)).body.data.id;
}

async function tailing(...args: string[]): Promise<Running> {
  const env = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: token };
  const tail = startSvc(["deliveries", "tail", ...args], { env });
  running.push(tail);
  await eventually(() => expect(tail.stderr()).toContain("Following"));
  return tail;
}

/** Lets an attempt fail, and its retry too, once the attempt is shown. @returns when it is shown */
function failTwice(status: number, body: string, isShown: () => void): Promise<void> {
  const shown = eventually(isShown);
  let attempts = 0;
  receiver.respondWith(async (_, response) => {
    attempts += 1;
    if (attempts > 1) await shown;
    response.writeHead(status).end(body);
  });
  return shown;
}

const records = (tail: Running) =>
  tail
    .stdout()
    .split("\n")
    .filter((line) => line !== "")
    .map((line): { id: string; status: string; attempt_count: number } => JSON.parse(line));
const states = (tail: Running) => records(tail).map(({ status, attempt_count }) => `${status} ${attempt_count}`);

test("prints each new delivery and each status change once, and exits with 0 on Ctrl-C", async () => {
  await newWebhook();
  const tail = await tailing("--json");
  await publish(eventOf(projectId));
  await eventually(() => expect(states(tail).at(-1)).toBe("succeeded 1"));
  const firstIsShown = failTwice(500, "", () => expect(states(tail)).toContain("pending 1"));
  await publish(eventOf(projectId));
  await firstIsShown;
  await eventually(() => expect(states(tail).at(-1)).toBe("failed 2"));
  const seen = records(tail).map(({ id, status, attempt_count }) => `${id} ${status} ${attempt_count}`);
  expect(new Set(seen).size).toBe(seen.length);
  tail.child.kill("SIGINT");
  expect(await tail.ended).toMatchObject({ code: 0 });
});

test("without --json prints the result, the hint and the response of a failed attempt", async () => {
  await newWebhook();
  const tail = await tailing("--last", "0");
  const firstIsShown = failTwice(404, "no such hook", () =>
    expect(tail.stdout()).toMatch(
      /failing .* attempt 1 {2}404 in \d+ ms {2}retry (?:in \d s|now)\n +→ The receiver returned 404.*\n +response: no such hook\n/,
    ),
  );
  await publish(eventOf(projectId));
  await firstIsShown;
  await eventually(() => expect(tail.stdout()).toContain("failed     deploy.started"));
});

test("exits with 3 when the credential is rejected, with 4 when the webhook was deleted", async () => {
  const id = await newWebhook();
  const deleted = await tailing("--webhook", id);
  const { data: key } = (await api.post("/v1/api-keys", { name: "ci" })).body;
  token = key.key;
  const rejected = await tailing("--webhook", await newWebhook());
  await api.delete(`/v1/api-keys/${key.id}`);
  await api.delete(`/v1/projects/${projectId}/webhooks/${id}`);
  expect(await rejected.ended).toMatchObject({ code: 3, stderr: expect.stringContaining("invalid_api_key") });
  expect(await deleted.ended).toMatchObject({ code: 4, stderr: expect.stringContaining("not_found") });
});

test("continues when one of several webhooks was deleted, and exits with 4 when all were deleted", async () => {
  const [one, other] = [await newWebhook(), await newWebhook()];
  const tail = await tailing("--json");
  await api.delete(`/v1/projects/${projectId}/webhooks/${one}`);
  await eventually(() => expect(tail.stderr()).toContain(`The webhook ${one} was deleted.`));
  await publish(eventOf(projectId));
  await eventually(() => expect(states(tail)).toContain("succeeded 1"));
  await api.delete(`/v1/projects/${projectId}/webhooks/${other}`);
  expect(await tail.ended).toMatchObject({ code: 4 });
});
