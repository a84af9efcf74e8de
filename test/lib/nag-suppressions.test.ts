import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Validations } from "aws-cdk-lib";
import { Code } from "aws-cdk-lib/aws-lambda";
import { Bucket } from "aws-cdk-lib/aws-s3";
import { AwsSolutionsChecks } from "cdk-nag";
import { suppressions } from "../../lib/nag-suppressions.ts";
import { ServiceStack } from "../../lib/service-stack.ts";
import type { Stage } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";

interface Finding {
  ruleName: string;
  acknowledgedId?: string;
  reason?: string;
  violatingConstructs: { constructPath: string }[];
}

const page = join(import.meta.dirname, "../../packages/console/src");
const folder = mkdtempSync(join(tmpdir(), "findings-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What cdk-nag finds in a stage, as at `cdk synth`. */
function findings(stage: Stage, extend: (stack: ServiceStack) => void = () => {}) {
  const outdir = mkdtempSync(join(folder, stage.name));
  const context = { "@aws-cdk/core:validateAgainstDefaultRules": true };
  const app = new App({ analyticsReporting: false, outdir, context });
  extend(new ServiceStack(app, "test", { stage, code: (file) => Code.fromInline(`// ${file}`), page }));
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  // It throws over an error, and not over a warning; the report has both.
  try {
    app.synth();
  } catch (error) {
    if ((error as Error).name !== "ValidationFailed") throw error;
  }
  const { pluginReports } = JSON.parse(readFileSync(join(outdir, "validation-report.json"), "utf8"));
  const nag = pluginReports.find(({ pluginName }: { pluginName: string }) => pluginName === "AwsSolutions");
  return nag as { violations: Finding[]; suppressedViolations: Finding[] };
}

const unnamedConsole: Stage = { ...stageNamed("dev"), name: "console", console: true };
const stages: Stage[] = [stageNamed("dev"), stageNamed("prod"), everyOption, unnamedConsole];
const found = stages.map((stage) => ({ name: stage.name, ...findings(stage) }));

test.each(found)("$name breaks no rule that is not acknowledged", ({ violations }) => {
  expect(violations).toEqual([]);
});

test("every acknowledgement is of a finding that is there", () => {
  const used = new Set(
    found.flatMap(({ suppressedViolations }) => suppressedViolations.map((each) => each.acknowledgedId)),
  );
  expect(suppressions.map(({ id }) => id).sort()).toEqual([...used].sort());
});

test("only answers that reach no function go without authorization", () => {
  const open = found.flatMap(({ suppressedViolations }) =>
    suppressedViolations.filter(({ ruleName }) => ruleName === "AwsSolutions-APIG4"),
  );
  const paths = open.flatMap(({ violatingConstructs }) =>
    violatingConstructs.map(({ constructPath }) => constructPath),
  );
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths) expect(path).toMatch(/\/(ANY|OPTIONS)\/Resource$/);
});

test("what breaks a rule and is not acknowledged is found", () => {
  const { violations } = findings(stageNamed("dev"), (stack) => new Bucket(stack, "Bucket"));
  expect(violations.map(({ ruleName }) => ruleName)).toContain("AwsSolutions-S1");
});
