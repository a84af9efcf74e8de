import { randomBytes, randomUUID } from "node:crypto";
import { createCertification } from "../../../functions/certifications/certification.ts";
import * as certifications from "../../../functions/certifications/certification-store.ts";
import { errorOf, newScenario, type Scenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const service = useService();
let scenario: Scenario;
beforeAll(async () => {
  scenario = await newScenario(service);
});

/** Stores a certification that was requested some minutes ago. @returns its id */
async function givenCertification(minutesAgo = 0): Promise<string> {
  const at = new Date(Date.now() - minutesAgo * 60_000);
  const certification = createCertification(scenario.webhook.id, at, randomBytes(16));
  await certifications.insert(certification);
  return certification.id;
}

const read = (id: string) => scenario.api.get(`${scenario.path}/certifications/${id}`);

test.each([
  [0, "running"],
  [10, "unfinished"],
])("a certification without results is, %d minutes after its request, %s", async (minutes, status) => {
  const id = await givenCertification(minutes);
  expect((await read(id)).body.data).toMatchObject({ id, status, finished_at: null, passed: null, checks: [] });
});

test("a certification that finished stays finished", async () => {
  const certification = createCertification(scenario.webhook.id, new Date(Date.now() - 86_400_000), randomBytes(16));
  await certifications.insert(certification);
  const at = new Date().toISOString();
  await certifications.finish(certification, { valid: { duration_ms: 5, status_code: 200 } }, at);
  expect((await read(certification.id)).body.data).toMatchObject({
    status: "finished",
    finished_at: at,
    passed: false,
  });
});

test("a certification is kept for 30 days", () => {
  const { expires_at } = createCertification(randomUUID(), new Date("2026-03-01T00:00:00Z"), randomBytes(16));
  expect(new Date(expires_at * 1000).toISOString()).toBe("2026-03-31T00:00:00.000Z");
});

test("an unknown certification, and one of another webhook, returns 404", async () => {
  const other = createCertification(randomUUID(), new Date(), randomBytes(16));
  await certifications.insert(other);
  for (const id of [randomUUID(), other.id])
    expect(errorOf(await read(id))).toEqual({ status: 404, code: "not_found" });
});

test("a certification is no delivery", async () => {
  const id = await givenCertification();
  expect(errorOf(await scenario.api.get(`${scenario.path}/deliveries/${id}`))).toEqual({
    status: 404,
    code: "not_found",
  });
});
