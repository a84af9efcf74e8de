import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, Validations } from "aws-cdk-lib";
import { Code } from "aws-cdk-lib/aws-lambda";
import { Bucket } from "aws-cdk-lib/aws-s3";
import { AwsSolutionsChecks } from "cdk-nag";
import cdkJson from "../../cdk.json" with { type: "json" };
import { ServiceStack } from "../../lib/service-stack.ts";
import { type Variant, variants } from "./variants.ts";

/*
 * Synthesizes every variant as bin/commands/app.ts does, with cdk-nag, and writes one JSON file each. Runs as a separate
 * process, which loads the CDK once. Each test file would load it again, which takes longer than a synthesis. Usage:
 * node test/lib/synthesize.ts <folder>
 */

export interface Synthesis {
  // biome-ignore lint/suspicious/noExplicitAny: a template is JSON of which each test knows its part
  template: any;
  hasTerminationProtection: boolean;
  /** Tags that CloudFormation adds to all resources. */
  tags: Record<string, string>;
  /** Where the stack is deployed: `aws://<account>/<region>`. */
  environment: string;
  warnings: string[];
  /** Findings of cdk-nag that are not acknowledged. */
  violations: Finding[];
  acknowledged: Finding[];
}

export interface Finding {
  ruleName: string;
  acknowledgedId?: string;
  violatingConstructs: { constructPath: string }[];
}

function synthesize({ stage, isUrgent = false, addsBucket = false }: Variant, outdir: string): Synthesis {
  const app = new App({ analyticsReporting: false, outdir, context: cdkJson.context });
  const stack = new ServiceStack(app, `test-${stage.name}`, {
    stage,
    isUrgent,
    // The code of each function is the name of its id, so that a test can find the function.
    code: (id) => Code.fromInline(`// ${id}`),
    page: join(import.meta.dirname, "../../packages/console/src"),
  });
  if (addsBucket) new Bucket(stack, "Bucket");
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  try {
    app.synth();
  } catch (error) {
    // Thrown because of a violation, after the template and the report have been written.
    if ((error as Error).name !== "ValidationFailed") throw error;
  }
  const read = (file: string) => JSON.parse(readFileSync(join(outdir, file), "utf8"));
  const { pluginReports } = read("validation-report.json");
  const nag = pluginReports.find(({ pluginName }: { pluginName: string }) => pluginName === "AwsSolutions");
  const metadata = stack.node.findAll().flatMap(({ node }) => node.metadata);
  return {
    template: read(stack.templateFile),
    hasTerminationProtection: stack.terminationProtection,
    tags: stack.tags.tagValues(),
    environment: stack.environment,
    warnings: metadata.filter(({ type }) => type === "aws:cdk:warning").map(({ data }) => String(data)),
    violations: nag.violations,
    acknowledged: nag.suppressedViolations,
  };
}

const [folder = ""] = process.argv.slice(2);
for (const [name, variant] of Object.entries<Variant>(variants)) {
  const synthesis = synthesize(variant, join(folder, "assemblies", name));
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(synthesis));
}
