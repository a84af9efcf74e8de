import { readFileSync } from "node:fs";
import { join } from "node:path";
import { workers } from "../../functions/manifest/workers.ts";
import { type Json, SynthesizedStack } from "../lib/synthesized.ts";

/* What the documents say about the first deployment and its price. */

const read = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8");
const deployment = read("docs/deployment.md");
const scale = read("docs/scale.md");

test.each(["README.md", "docs/deployment.md"])("%s names the quota of Lambda before the first deployment", (path) => {
  const page = read(path);
  const quotaAt = page.indexOf("L-B99A9384");
  expect(quotaAt).toBeGreaterThan(0);
  expect(quotaAt).toBeLessThan(page.indexOf("npx cdk bootstrap"));
});

test("the deployment page says how many functions the queues can start", () => {
  const concurrency = workers.flatMap(({ trigger }) => (trigger.kind === "queue" ? [trigger.maxConcurrency] : []));
  const sum = concurrency.reduce((total, each) => total + each, 0);
  expect(deployment).toContain(`up to ${sum} senders and\nfan-outs`);
});

test("both pages say how much less an idle dev costs than prod", () => {
  const alarmCost = (name: "dev" | "prod") =>
    new SynthesizedStack(name)
      .all("AWS::CloudWatch::Alarm")
      .map(({ Properties }) => Properties.Metrics?.filter(({ MetricStat }: Json) => MetricStat).length ?? 1)
      .reduce((total, metrics) => total + metrics * 0.1, 0);
  const less = `$${(alarmCost("prod") - alarmCost("dev")).toFixed(2)}`;
  expect(deployment).toContain(`dev ${less} a month less than prod`);
  expect(scale).toContain(`a dev stage costs ${less} less`);
});
