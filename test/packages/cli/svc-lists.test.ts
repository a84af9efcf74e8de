import http from "node:http";
import { json } from "node:stream/consumers";
import { tools } from "../../../packages/cli/src/mcp/tools.ts";
import { createClient } from "../../../packages/client/src/client.ts";
import { unknownApiKey } from "../../support/api-keys.ts";
import { listening } from "../../support/listening.ts";
import { svcHere } from "../../support/svc-here.ts";

/* Every command that reads a list, against a service whose lists have 250 items on pages of at most 100. */

const COUNT = 250;
const idOf = (number: number) => `0193f8a0-0000-7000-8000-${String(number).padStart(12, "0")}`;
const webhook = {
  id: idOf(1),
  url: "https://example.com/",
  events: ["deploy.started"],
  enabled: true,
  key: "",
  secret: "",
};
const actors = [
  { type: "platform" },
  { type: "system" },
  { type: "anonymous" },
  { type: "jwt", user_id: "alice" },
  { type: "api_key", user_id: "bob", credential_id: "k-1" },
  { type: "workflow", user_id: "workflow:7", repository: "acme/shop" },
];
/** Has the fields of a project, a delivery, a deployment event and an audit event. */
const itemOf = (number: number) => ({
  ...{ id: idOf(number), name: `project ${number}`, created_at: idOf(number) },
  deployment_id: idOf(Math.floor(number / eventsPerDeployment)),
  ...{ event: "deploy.started", timestamp: "2026-11-21T12:00:00Z", payload: {}, status: "failed", test: false },
  ...{ at: "2026-11-21T12:00:00Z", action: "webhook.updated", resource_id: "w-1", details: {} },
  actor: actors[number % actors.length],
});

let requests: string[];
let bodies: unknown[];
/** The number of items of each list. */
let length: number;
let eventsPerDeployment: number;
/** A list that cannot be read. */
let failing: string | undefined;
const failure = JSON.stringify({ error: { code: "internal_error", message: "No.", request_id: "r-1" } });
let env: Record<string, string>;

beforeAll(async () => {
  const server = http.createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://service.test");
    const { cursor, after, limit = "100", ...filters } = Object.fromEntries(searchParams);
    const list = pathname.split("/").at(-1) ?? "";
    if (request.method === "POST") bodies.push(await json(request));
    const parent = pathname.includes("/webhooks/") ? ["webhook's"] : [];
    requests.push([...parent, list, limit, ...Object.values(filters)].join(" "));
    if (list === failing) return response.writeHead(500).end(failure);
    if (!["projects", "deliveries", "events", "audit-events"].includes(list)) {
      const listed = { webhooks: [webhook], current: { type: "api_key", project_ids: null } }[list];
      const data = (request.method === "GET" && listed) || webhook;
      return response.end(JSON.stringify({ data }));
    }
    const from = Number(cursor ?? after ?? 0);
    const to = Math.min(from + Number(limit), length);
    if (to < length) response.setHeader("Link", `<http://service.test/?cursor=${to}>; rel="next"`);
    const items = Array.from({ length: to - from }, (_, index) => itemOf(from + index));
    return response.end(JSON.stringify({ data: items }));
  });
  env = { SVC_BASE_URL: await listening(server), SVC_API_KEY: "svc_1", SVC_PROJECT: idOf(0) };
});
beforeEach(() => {
  [requests, bodies, length, eventsPerDeployment, failing] = [[], [], COUNT, 1, undefined];
});

/** The ids that a command prints, as one JSON list or as one record per line. */
async function idsOf(command: string): Promise<string[]> {
  const { stdout } = await svcHere([...command.split(" "), "--json"], { env });
  const records = stdout.startsWith("[") ? stdout : `[${stdout.trim().replaceAll("\n", ",")}]`;
  return JSON.parse(records).map(({ id }: { id: string }) => id);
}
const [since, until] = ["2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"];
const pages = (list: string, ...limits: number[]) => limits.map((limit) => `${list} ${limit}`);

test.each<[string, number, string[]]>([
  ["projects list", COUNT, pages("projects", 100, 100, 100)],
  ["deliveries list", 20, pages("deliveries", 20)],
  ["deliveries list --limit 100", 100, pages("deliveries", 100)],
  ["deliveries list --limit 101", 101, pages("deliveries", 100, 100)],
  [
    "deliveries list --limit 999 --webhook 0193",
    COUNT,
    ["webhooks 100", ...pages("webhook's deliveries", 100, 100, 100)],
  ],
  ["deliveries list --limit 150 --status failed", 150, ["deliveries 100 failed", "deliveries 100 failed"]],
  [
    `deliveries list --limit 2 --status held --event deploy.failed --deployment ${idOf(7)} --error timeout --since ${since} --until ${until}`,
    2,
    [`deliveries 2 held deploy.failed ${idOf(7)} timeout ${since} ${until}`],
  ],
  [`events list --limit 2 --event deploy.failed --deployment ${idOf(7)}`, 2, [`events 2 deploy.failed ${idOf(7)}`]],
  ["events list --limit 100", 100, pages("events", 100)],
  ["events list --limit 101", 101, pages("events", 100, 100)],
  ["events list --limit 999", COUNT, pages("events", 100, 100, 100)],
  ["deployments list --limit 49", 49, pages("events", 100)],
  ["deployments list --limit 50", 50, pages("events", 100, 100)],
  ["deployments list --limit 100", 100, pages("events", 100, 100, 100)],
  ["webhooks test-filter", 100, ["webhooks 100", `webhook's ${webhook.id} 100`, "events 100"]],
  ["audit --limit 7", 7, pages("audit-events", 7)],
  [`audit --limit 7 --project ${idOf(0)}`, 7, pages("audit-events", 7)],
])("svc %s prints %i items, and requests these pages: %j", async (command, count, expected) => {
  expect(await idsOf(command)).toEqual(Array.from({ length: count }, (_, number) => idOf(number)));
  expect(requests).toEqual(expected);
});

test.each<[string, object, string[]]>([
  ["list_projects", {}, pages("projects", 100, 100, 100)],
  ["list_deliveries", { limit: 100 }, pages("deliveries", 100)],
  ["deployment_status", {}, pages("events", 1, 20)],
])("the MCP tool %s with %j requests these pages: %j", async (name, input, expected) => {
  eventsPerDeployment = COUNT;
  const api = createClient({ baseUrl: env.SVC_BASE_URL ?? "", token: "svc_1" });
  await tools.find((each) => each.name === name)?.run(api, { project: idOf(0), ...input }, { isOffered: () => true });
  expect(requests).toEqual(expected.map((page) => expect.stringMatching(`^${page}( |$)`)));
});

test("the audit says who did each thing", async () => {
  const { stdout } = await svcHere(["audit", "--limit", "6"], { env });
  expect(stdout.match(/(?<=w-1 +)\S.*/g)).toEqual([
    ...["the platform", "this service", "someone without a credential"],
    ...["alice", "bob with the key k-1", "workflow:7 of acme/shop"],
  ]);
});

test("a project is found by its name on each page", async () => {
  await svcHere(["events", "list", "--limit", "1", "--project", "project 249"], { env });
  expect(requests).toEqual(["current 100", ...pages("projects", 100, 100, 100), "events 1"]);
});

test("a list of deployments reads at most the newest thousand events", async () => {
  [length, eventsPerDeployment] = [2_000, 100];
  expect(await idsOf("deployments list --limit 100")).toHaveLength(10);
  expect(requests).toHaveLength(10);
});

test.each([
  ["failed", "250 would be sent again: 250 failed, 0 held, 0 waiting.\n"],
  ["held", "0 would be sent again: 0 failed, 0 held, 0 waiting.\n"],
])("a recovery's dry run counts the deliveries of all pages that are %s", async (status, counted) => {
  const args = ["deliveries", "recover", "--since", "2024-01-01T00:00:00Z", "--dry-run", "--status", status];
  expect((await svcHere(args, { env })).stdout).toBe(counted);
});

test("a list of deliveries fails when the names of the webhooks cannot be read", async () => {
  failing = "webhooks";
  expect(await svcHere(["deliveries", "list"], { env })).toMatchObject({ code: 5, stdout: "" });
});

test("leaked keys are revoked 100 in a request", async () => {
  const keys = Array.from({ length: COUNT }, unknownApiKey);
  const { stdout, stderr } = await svcHere(["keys", "revoke-leaked", "--json"], { env, input: keys.join("\n") });
  expect(JSON.parse(stdout)).toEqual({ received: 250 });
  expect(stderr).toMatch(/^Revoked 250 keys: /);
  expect(bodies).toEqual([0, 100, 200].map((from) => ({ credentials: keys.slice(from, from + 100) })));
});
