import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dollarsFor } from "../../bench/prices.ts";
import { workerRows } from "../../functions/foundation/manifest/workers.ts";
import { reservedConcurrencyOf } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";
import { type Json, SynthesizedStack } from "../lib/synthesized.ts";

/* What the documents say about the first deployment and its price. */

const read = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8");
const deployment = read("docs/deployment.md");
const scale = read("docs/scale.md");

test.each([
  ["README.md", "(docs/deployment.md#the-first-deployment)"],
  ["docs/deployment.md", "npx cdk bootstrap"],
])("%s names the quota of Lambda before the first deployment", (path, deployment) => {
  const page = read(path);
  const quotaAt = page.indexOf("L-B99A9384");
  expect(quotaAt).toBeGreaterThan(0);
  expect(quotaAt).toBeLessThan(page.indexOf(deployment));
});

test("the deployment page says how many functions the queues can start", () => {
  const concurrency = workerRows.flatMap(({ trigger }) => (trigger.kind === "queue" ? [trigger.maxConcurrency] : []));
  const sum = concurrency.reduce((total, each) => total + each, 0);
  expect(deployment).toContain(`up to ${sum} senders and\nfan-outs`);
});

test("the deployment page says which quota the reserved concurrency of prod needs, and that dev needs none", () => {
  const reserved = reservedConcurrencyOf(stageNamed("prod"));
  const sum = Object.values(reserved).reduce((total, each) => total + each, 0);
  // AWS keeps 100 executions unreserved.
  expect(deployment).toContain(`**prod does not deploy with less than ${sum + 100}**`);
  expect(deployment).toContain(
    `reserves ${reserved.authorizer} executions for the authorizer and ${reserved.recover} for \`recover\``,
  );
  expect(reservedConcurrencyOf(stageNamed("dev"))).toEqual({});
});

test("the deployment page says what the firewall costs", () => {
  const rules = new SynthesizedStack("prod").all("AWS::WAFv2::WebACL").flatMap(({ Properties }) => Properties.Rules);
  const perMonth = dollarsFor("webAcl", 1) + dollarsFor("webAclRule", rules.length);
  const perMillion = dollarsFor("firewallRequest", 1_000_000);
  expect(deployment).toContain(
    `adds $${perMonth.toFixed(2)} a month and $${perMillion.toFixed(2)} per million requests`,
  );
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
