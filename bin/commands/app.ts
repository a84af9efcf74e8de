import { join } from "node:path";
import { App, Validations } from "aws-cdk-lib";
import { Code } from "aws-cdk-lib/aws-lambda";
import { AwsSolutionsChecks } from "cdk-nag";
import { bundleFolder } from "../../lib/names.ts";
import { ServiceStack } from "../../lib/service-stack.ts";
import { InvalidStageError } from "../../lib/stage.ts";
import { readContext, UnknownStageError } from "../../lib/stages.ts";
import { writeConsole } from "../../packages/console/build.ts";

/*
 * The CDK app: `npx cdk synth|diff|deploy -c stage=<name> [-c urgent=true]`. cdk.json runs bin/build.ts first, which writes
 * the bundles to dist/. A finding of cdk-nag that lib/nag-suppressions.ts does not acknowledge fails the synthesis.
 */

const bundles = join(import.meta.dirname, "../..", "dist");
const page = join(bundles, "console-page");

export async function main(): Promise<void> {
  try {
    const app = new App({ analyticsReporting: false });
    const { stage, isUrgent } = readContext((key) => app.node.tryGetContext(key));
    if (stage.console) await writeConsole(page);
    new ServiceStack(app, `deployment-webhooks-${stage.name}`, {
      stage,
      page,
      code: (file) => Code.fromAsset(join(bundles, bundleFolder(file))),
      isUrgent,
    });
    Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
    app.synth();
  } catch (error) {
    if (!(error instanceof UnknownStageError || error instanceof InvalidStageError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
