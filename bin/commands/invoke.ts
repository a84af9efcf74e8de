import { workerRows } from "../../functions/foundation/manifest/workers.ts";
import { parseJson } from "../../functions/foundation/platform/parse-json.ts";
import { command, UsageError } from "../command/command.ts";
import { functionOf, invocationSettings, stageOption } from "../command/invoke-function.ts";

const names = workerRows.filter(({ trigger }) => trigger.kind === "invoke").map(({ id }) => id);

const help = {
  name: "npm run --silent invoke",
  about: `Calls a function that the platform invokes under IAM, and prints what it returns, as JSON. docs/deployment.md says what each
takes.
${names.map((name) => `  ${name}`).join("\n")}`,
  words: "<function> <json>",
  options: { stage: stageOption },
  settings: invocationSettings,
  examples: [
    `npm run --silent invoke -- projects-suspend '{"project_id":"01930000-0000-7000-8000-00000000d301","suspended":true}'`,
    `npm run --silent invoke -- api-keys-revoke-all '{"user_id":"bob"}' --stage dev`,
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ stage }, [name = "", json = "", ...more]) => {
    if (!names.some((known) => known === name)) throw new UsageError(`No function named ${name}.`);
    const payload = parseJson(json);
    if (typeof payload !== "object" || payload === null || more.length > 0)
      throw new UsageError("Pass one JSON object.");
    const invoke = await functionOf(name, stage);
    return JSON.stringify(await invoke(payload));
  });
}
