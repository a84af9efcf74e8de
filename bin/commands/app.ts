import { writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { App, Validations } from "aws-cdk-lib";
import { Code } from "aws-cdk-lib/aws-lambda";
import { AwsSolutionsChecks } from "cdk-nag";
import { apiPage } from "../../contract/page.ts";
import { API_PAGE } from "../../lib/console-headers.ts";
import { stackName } from "../../lib/names.ts";
import { ServiceStack } from "../../lib/service-stack.ts";
import { InvalidStageError } from "../../lib/stage.ts";
import { InvalidContextError, readContext } from "../../lib/stages.ts";
import { writeConsole } from "../../packages/console/build.ts";
import { command } from "../command/command.ts";
import { StartError } from "../command/start-error.ts";
import { build } from "./build.ts";

/*
 * The CDK app: `npx cdk synth|diff|deploy -c stage=<name> [-c urgent=true]`. A finding of cdk-nag that
 * lib/nag-suppressions.ts does not acknowledge fails the synthesis.
 */

const bundles = join(import.meta.dirname, "../..", "dist");
const page = join(bundles, "console-page");

const help = {
  name: "npx cdk synth|diff|deploy -c stage=<name> [-c urgent=true]",
  about: `The CDK app of the service, which the CDK starts.
Run through \`npx cdk synth|diff|deploy -c stage=<name>\`: it bundles the functions first and passes the stage on.`,
  examples: ["npx cdk synth", "npx cdk diff -c stage=prod", "npx cdk deploy -c stage=prod"],
};

export async function main(): Promise<void> {
  await command(help, async () => {
    try {
      await synthesize();
    } catch (error) {
      const isCallersError = error instanceof InvalidContextError || error instanceof InvalidStageError;
      throw isCallersError ? new StartError(error.message, { cause: error }) : error;
    }
    return undefined;
  });
}

async function synthesize(): Promise<void> {
  const app = new App({ analyticsReporting: false });
  // Before the bundles are built, which takes seconds.
  const { stage, isUrgent } = readContext(app.node.getAllContext());
  console.error(`Stage ${stage.name}${isUrgent ? ", urgent" : ""}`);
  if (!(await build())) return;
  if (stage.console) {
    await writeConsole(page);
    await writeFile(join(page, API_PAGE), await apiPage());
  }
  const { templateFile } = new ServiceStack(app, stackName(stage), {
    stage,
    page,
    code: (id) => Code.fromAsset(join(bundles, id)),
    isUrgent,
  });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  app.synth();
  console.error(`Template ${relative("", join(app.outdir, templateFile))}`);
}
