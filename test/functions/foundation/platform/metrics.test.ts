import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../../../functions/foundation/manifest/metrics.ts";
import { dimensionsOf, embeddedMetrics } from "../../../../functions/foundation/platform/metrics.ts";
import { embeddedMetricSchema } from "../../../support/metrics.ts";

const now = new Date("2026-11-21T12:00:00Z");

test("a metric has the dimension stage", () => {
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

test("a metric with a dimension is written with and without it, other metrics of the line only without", () => {
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

test("a metric with two dimensions is written with each of them alone", () => {
  expect(embeddedMetrics([{ rejectedCredentials: 1 }], "prod", now)).toMatchObject({
    _aws: { CloudWatchMetrics: [{ Dimensions: [["stage"], ["stage", "reason"], ["stage", "version"]] }] },
  });
});

test("the value 0 is written, and undefined is not", () => {
  const document = embeddedMetrics([{ sweepLag: 0, redriven: undefined }], "prod", now);
  expect(document).toMatchObject({ SweepLag: 0 });
  expect(JSON.stringify(document)).not.toContain("Redriven");
});

test("returns an empty object when nothing was measured", () => {
  expect(embeddedMetrics([{}], "prod", now)).toEqual({});
  expect(embeddedMetrics([{ retries: undefined }], "prod", now)).toEqual({});
});

test("several measurements of a metric become one metric with several values", () => {
  const measured = [
    { attempts: 1, deliveryLatency: 7 },
    { attempts: 1, retries: 1 },
    { attempts: 1, deliveryLatency: 9 },
  ];
  const document = embeddedMetrics(measured, "prod", now);
  expect(document).toMatchObject({ Attempts: [1, 1, 1], DeliveryLatency: [7, 9], Retries: 1 });
  embeddedMetricSchema.parse({ ...document, outcome: "succeeded" });
});

test("dimensionsOf returns only the dimension fields of the measured metrics", () => {
  const fields = { outcome: "succeeded", reason: "x", delivery_id: "d" };
  expect(dimensionsOf({ attempts: 1, retries: 1 }, fields)).toEqual({ outcome: "succeeded" });
  expect(dimensionsOf({ retries: 1, attempts: undefined }, fields)).toEqual({});
});

const rows = Object.entries(metrics) as [MetricKey, { name: string; unit: string; dimensions?: string[] }][];
test.each(rows)(
  "%s is written as a document that conforms to the specification",
  (key, { name, unit, dimensions = [] }) => {
    const line = {
      message: "m",
      ...Object.fromEntries(dimensions.map((dimension) => [dimension, "some"])),
      ...embeddedMetrics([{ [key]: 3 }], "dev", now),
    };
    const document = embeddedMetricSchema.parse(JSON.parse(JSON.stringify(line)));
    expect(document._aws.CloudWatchMetrics[0]?.Metrics).toEqual([{ Name: name, Unit: unit }]);
  },
);

test("metric names are unique and, unlike field names, in PascalCase", () => {
  const names = rows.map(([, { name }]) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[A-Z][A-Za-z]+$/);
});
