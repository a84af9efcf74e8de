import { payloadSchema, webhookPayloadSchemas } from "../../contract/responses/payload.ts";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import { sampleFields, sampleWebhookEvent } from "../../functions/foundation/events/sample-event.ts";
import { type deploymentEvents, eventNames, webhookEventNames } from "../../functions/foundation/manifest/events.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const projectId = "01930000-0000-7000-8000-00000000d301";
const deploymentId = "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11";

const usual = {
  project: "Shop",
  environment: "production",
  branch: "main",
  commit: "1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b",
};

/** The names of the events of the contract, pinned here and nowhere else, with the data of their samples. */
const sampleData = {
  "deploy.started": usual,
  "deploy.succeeded": { url: "https://demo.example.com", status: "running", ...usual },
  "deploy.failed": { reason: "health check timed out", ...usual },
} satisfies Record<keyof typeof deploymentEvents, object>;

test("the names of all events are known to the schemas of payloads", () => {
  const names = Object.keys(sampleData);
  expect(eventNames).toEqual(names);
  expect(webhookEventNames).toEqual([...names, "webhook.failing", "webhook.disabled"]);
  expect(Object.keys(webhookPayloadSchemas)).toEqual([...webhookEventNames]);
});

const accepts = (name: string, body: unknown) => webhookPayloadSchemas[name]?.safeParse(body).success;

test.each(Object.entries(sampleData))(
  "the sample of %s is a valid event, whose body conforms to the schema of its payload",
  (name, data) => {
    const sample = sampleFields(name, { projectId, id: deploymentId, now });
    expect(sample).toEqual({
      event: name,
      project_id: projectId,
      deployment_id: deploymentId,
      timestamp: "2026-03-01T12:00:00.000Z",
      data,
    });
    const result = parseDeploymentEvent(JSON.stringify(sample));
    if (!result.ok) throw new Error(result.reason);
    const body = JSON.parse(result.event.body);
    expect(body).toEqual(sample);
    expect(payloadSchema.parse(body)).toEqual(body);
    expect(eventNames.filter((each) => accepts(each, body))).toEqual([name]);
  },
);

test("the sample of deploy.succeeded contains given fields", () => {
  const given = { url: "https://app.example.com", more: 1 };
  const { data } = sampleFields("deploy.succeeded", { projectId, id: deploymentId, now }, given);
  expect(data).toEqual({ ...sampleData["deploy.succeeded"], ...given });
});

test.each(webhookEventNames)(
  "the sample of %s for a test delivery matches its payload schema, and no other",
  (name) => {
    const sample = sampleWebhookEvent(name, { projectId, id: deploymentId, now }, { test: true });
    const body = JSON.parse(sample.body);
    expect(body.deployment_id).toBe(name.startsWith("deploy.") ? deploymentId : null);
    expect(webhookEventNames.filter((each) => accepts(each, body))).toEqual([name]);
  },
);
