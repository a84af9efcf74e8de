import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../../functions/manifest/metrics.ts";
import { dimensionsOf, embeddedMetrics } from "../../../functions/platform/metrics.ts";
import { embeddedMetricSchema } from "../../support/metrics.ts";

const now = new Date("2026-11-21T12:00:00Z");

test("a metric is counted for its stage", () => {
  expect(embeddedMetrics([{ retries: 2 }], "prod", now)).toEqual({
    _aws: {
      Timestamp: now.getTime(),
      CloudWatchMetrics: [
        { Namespace: METRICS_NAMESPACE, Dimensions: [["stage"]], Metrics: [{ Name: "Retries", Unit: "Count" }] },
      ],
    },
    stage: "prod",
    Retries: 2,
  });
});

test("a metric with a dimension is counted with it and without, and those beside it are not", () => {
  const document = embeddedMetrics([{ attempts: 1, exhausted: 1, deliveryLatency: 7 }], "prod", now);
  expect(document).toMatchObject({
    _aws: {
      CloudWatchMetrics: [
        { Dimensions: [["stage"], ["stage", "outcome"]], Metrics: [{ Name: "Attempts", Unit: "Count" }] },
        {
          Dimensions: [["stage"]],
          Metrics: [
            { Name: "DeliveryLatency", Unit: "Milliseconds" },
            { Name: "Exhausted", Unit: "Count" },
          ],
        },
      ],
    },
    Attempts: 1,
    Exhausted: 1,
    DeliveryLatency: 7,
  });
});

test("0 is a value, undefined is none", () => {
  const document = embeddedMetrics([{ sweepLag: 0, redriven: undefined }], "prod", now);
  expect(document).toMatchObject({ SweepLag: 0 });
  expect(JSON.stringify(document)).not.toContain("Redriven");
});

test("where nothing was measured there is nothing to extract", () => {
  expect(embeddedMetrics([{}], "prod", now)).toEqual({});
  expect(embeddedMetrics([{ retries: undefined }], "prod", now)).toEqual({});
});

test("what was measured several times is one metric with several values", () => {
  const measured = [
    { attempts: 1, deliveryLatency: 7 },
    { attempts: 1, retries: 1 },
    { attempts: 1, deliveryLatency: 9 },
  ];
  const document = embeddedMetrics(measured, "prod", now);
  expect(document).toMatchObject({ Attempts: [1, 1, 1], DeliveryLatency: [7, 9], Retries: 1 });
  embeddedMetricSchema.parse({ ...document, outcome: "succeeded" });
});

test("the dimensions of what was measured are fields of its line, and no others", () => {
  const fields = { outcome: "succeeded", reason: "x", delivery_id: "d" };
  expect(dimensionsOf({ attempts: 1, retries: 1 }, fields)).toEqual({ outcome: "succeeded" });
  expect(dimensionsOf({ retries: 1, attempts: undefined }, fields)).toEqual({});
});

const rows = Object.entries(metrics) as [MetricKey, { name: string; unit: string; dimension?: string }][];
test.each(rows)("%s makes a document that the specification takes", (key, { name, unit, dimension }) => {
  const line = {
    message: "m",
    ...(dimension && { [dimension]: "some" }),
    ...embeddedMetrics([{ [key]: 3 }], "dev", now),
  };
  const document = embeddedMetricSchema.parse(JSON.parse(JSON.stringify(line)));
  expect(document._aws.CloudWatchMetrics[0]?.Metrics).toEqual([{ Name: name, Unit: unit }]);
});

test("no two rows share a name, and no name is that of a field", () => {
  const names = rows.map(([, { name }]) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[A-Z][A-Za-z]+$/);
});
