import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { useReceiver } from "../../support/receiver.ts";
import { useService } from "../../support/service.ts";
import { startSvc } from "../../support/svc.ts";

/* `svc deliveries tail` against the real service. */

process.env.RETRY_SCHEDULE = "2";
const service = useService({ deliver: true });
const receiver = useReceiver();

test("prints each new delivery and each status change once, and exits with 0 on Ctrl-C", async () => {
  const { api, token, userId } = service.user();
  const projectId = await service.project(userId);
  await api.post(`/v1/projects/${projectId}/webhooks`, { url: receiver.url, events: ["deploy.started"] });
  const env = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: token };
  const tail = startSvc(["deliveries", "tail", "--json"], { env });
  const seen = () =>
    tail
      .stdout()
      .split("\n")
      .filter((line) => line !== "")
      .map((line): { id: string; status: string; attempt_count: number } => JSON.parse(line));
  const states = () => seen().map(({ status, attempt_count }) => `${status} ${attempt_count}`);
  try {
    await eventually(() => expect(tail.stderr()).toContain("Following"));
    await publish(eventOf(projectId));
    await eventually(() => expect(states().at(-1)).toBe("succeeded 1"));
    const firstIsShown = eventually(() => expect(states()).toContain("pending 1"));
    let attempts = 0;
    receiver.respondWith(async (_, response) => {
      attempts += 1;
      if (attempts > 1) await firstIsShown;
      response.writeHead(500).end();
    });
    await publish(eventOf(projectId));
    await firstIsShown;
    await eventually(() => expect(states().at(-1)).toBe("failed 2"));
    const changes = seen().map(({ id, status, attempt_count }) => `${id} ${status} ${attempt_count}`);
    expect(new Set(changes).size).toBe(changes.length);
    tail.child.kill("SIGINT");
    expect(await tail.ended).toMatchObject({ code: 0 });
  } finally {
    tail.child.kill("SIGKILL");
  }
});
