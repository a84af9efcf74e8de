import {
  eventMeanings,
  payloadSchema,
  payloadSchemas,
  webhookPayloadSchemas,
} from "../../contract/responses/payload.ts";
import type { EventName } from "../../functions/foundation/events/deployment-event.ts";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import { sampleEvent, sampleWebhookEvent } from "../../functions/foundation/events/sample-event.ts";
import { eventNames, webhookEventNames } from "../../functions/foundation/manifest/events.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const projectId = "01930000-0000-7000-8000-00000000d301";
const deploymentId = "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11";

/** The names of all events, pinned here and nowhere else, with the data of their samples. */
const sampleData = {
  "deploy.started": {},
  "deploy.succeeded": { url: "https://demo.example.com", status: "running" },
  "deploy.failed": { reason: "health check timed out" },
} satisfies Record<EventName, object>;

test("the names of all events are known to the descriptions and to the schemas of payloads", () => {
  const names = Object.keys(sampleData);
  expect(eventNames).toEqual(names);
  expect(Object.keys(eventMeanings)).toEqual(names);
  expect(Object.keys(payloadSchemas)).toEqual(names);
  expect(payloadSchema.def.options).toEqual(Object.values(payloadSchemas));
});

test.each(Object.entries(sampleData) as [EventName, object][])(
  "the sample of %s is a valid event, whose body conforms to the schema of its payload",
  (name, data) => {
    const sample = sampleEvent(name, { projectId, deploymentId, now });
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
    for (const other of eventNames.filter((each) => each !== name)) {
      expect(payloadSchemas[other].safeParse(body).success).toBe(false);
    }
  },
);

test("the sample of deploy.succeeded contains the given URL", () => {
  const { data } = sampleEvent("deploy.succeeded", { projectId, deploymentId, now, url: "https://app.example.com" });
  expect(data).toEqual({ url: "https://app.example.com", status: "running" });
});

test.each(webhookEventNames)(
  "the sample of %s for a test delivery matches its payload schema, and no other",
  (name) => {
    const sample = sampleWebhookEvent(name, { projectId, id: deploymentId, now }, { test: true });
    const body = JSON.parse(sample.body);
    expect(webhookPayloadSchemas[name].parse(body)).toEqual(body);
    expect(body.deployment_id).toBe(name.startsWith("deploy.") ? deploymentId : null);
    for (const other of webhookEventNames.filter((each) => each !== name)) {
      expect(webhookPayloadSchemas[other].safeParse(body).success).toBe(false);
    }
  },
);
