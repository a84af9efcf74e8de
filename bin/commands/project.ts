import { randomUUID } from "node:crypto";
import { memberInput } from "../../functions/foundation/access/member.ts";
import { ApiError } from "../../functions/foundation/platform/errors.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { parse } from "../../functions/foundation/schema/input.ts";
import { handler as upsertMember } from "../../functions/identity/members/upsert-member.ts";
import { command, UsageError } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { settingRows } from "../command/settings.ts";

const help = {
  name: "npm run --silent project",
  about: `Puts a user into a project of the running service and prints the project's id.
With the id of an existing project it adds the user, or changes the user's role and the name that the user sees.`,
  options: {
    user: { value: "<id>", about: "user id, any text", isRequired: true },
    name: { value: "<name>", about: "name of the project", isRequired: true },
    id: { value: "<uuid>", about: "id of the project", shownDefault: "a new project" },
    role: { value: "admin|viewer", about: "role of the user", shownDefault: "admin" },
  },
  settings: settingRows("DATA_DIR", "AWS_ENDPOINT_URL_DYNAMODB"),
  examples: [
    'npm run --silent project -- --user demo-user --name "My shop"',
    'npm run --silent project -- --user bob --name "My shop" --id 01930000-0000-7000-8000-00000000d301 --role viewer',
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ user, name, id, role }) => {
    logSink.write = () => {};
    const input = { user_id: user, project_id: id ?? randomUUID(), name, role };
    checkInput(input);
    await connect();
    const project = await upsertMember(input);
    return project.id;
  });
}

const optionByField: Record<string, string> = { user_id: "--user", project_id: "--id", name: "--name", role: "--role" };

/** @throws UsageError that names the option of the first invalid field */
function checkInput(input: object): void {
  try {
    parse(memberInput, input);
  } catch (error) {
    const [first] = error instanceof ApiError ? (error.details ?? []) : [];
    if (first === undefined) throw error;
    throw new UsageError(`${optionByField[first.path]} ${first.message}.`);
  }
}
