import { randomUUID } from "node:crypto";
import { memberInput, removalInput } from "../../functions/foundation/access/member.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { handler as removeMember } from "../../functions/identity/members/remove-member.ts";
import { handler as upsertMember } from "../../functions/identity/members/upsert-member.ts";
import { handler as suspend, suspensionInput } from "../../functions/webhooks/webhook/suspend.ts";
import { checkInput } from "../command/check-input.ts";
import { command, UsageError } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { settingRows } from "../command/settings.ts";

const help = {
  name: "npm run --silent project",
  about: `Puts a user into a project of the running service and prints the project's id.
With the id of an existing project it adds the user, or changes the user's role and the name that the user sees.
  remove   removes the user from the project
  suspend  holds the events of the project, and rejects what sends, until
  resume   ends the suspension. Held deliveries stay held: recover them`,
  words: "[remove|suspend|resume]",
  options: {
    user: { value: "<id>", about: "user id, any text; required to add and to remove" },
    name: { value: "<name>", about: "name of the project; required to add" },
    id: { value: "<uuid>", about: "id of the project; required except to add", shownDefault: "a new project" },
    role: { value: "admin|viewer", about: "role of the user, to add", shownDefault: "admin" },
  },
  settings: settingRows("DATA_DIR", "AWS_ENDPOINT_URL_DYNAMODB"),
  examples: [
    'npm run --silent project -- --user demo-user --name "My shop"',
    'npm run --silent project -- --user bob --name "My shop" --id 01930000-0000-7000-8000-00000000d301 --role viewer',
    "npm run --silent project -- remove --user bob --id 01930000-0000-7000-8000-00000000d301",
    "npm run --silent project -- suspend --id 01930000-0000-7000-8000-00000000d301",
  ],
} as const;

type Options = Partial<Record<keyof typeof help.options, string | undefined>>;
type Verb = (options: Options) => Promise<string>;

export async function main(): Promise<void> {
  await command(help, async (options, [verb, ...more]) => {
    logSink.write = () => {};
    const run = verb === undefined ? add : Object.hasOwn(verbs, verb) && verbs[verb as keyof typeof verbs];
    if (!run || more.length > 0) {
      throw new UsageError(`No command named ${[verb, ...more].join(" ")}. Pass remove, suspend or resume, or none.`);
    }
    return run(options);
  });
}

async function add({ id, ...options }: Options): Promise<string> {
  const { user, name } = required(options, "user", "name");
  const input = { user_id: user, project_id: id ?? randomUUID(), name, role: options.role };
  checkInput(memberInput, input, optionByField);
  await connect();
  const project = await upsertMember(input);
  return project.id;
}

const verbs = {
  remove: async (options) => {
    const { user, id } = required(options, "user", "id");
    const input = { user_id: user, project_id: id };
    checkInput(removalInput, input, optionByField);
    await connect();
    const { removed } = await removeMember(input);
    return removed ? `${user} removed` : `${user} was not a member`;
  },
  suspend: (options) => changeSuspension(options, true),
  resume: (options) => changeSuspension(options, false),
} satisfies Record<string, Verb>;

async function changeSuspension(options: Options, suspended: boolean): Promise<string> {
  const { id } = required(options, "id");
  const input = { project_id: id, suspended };
  checkInput(suspensionInput, input, optionByField);
  await connect();
  const { suspended_at, webhooks } = await suspend(input);
  if (suspended) return `suspended since ${suspended_at}, with ${webhooks.length} webhooks`;
  if (suspended_at === null) return "was not suspended";
  const hint = "To send what was held, an admin recovers each webhook:";
  const commands = webhooks.map(
    (webhook) =>
      `  npm run --silent svc -- deliveries recover --project ${id} --webhook ${webhook} --since <time> --status held`,
  );
  return [`was suspended since ${suspended_at}`, ...(commands.length > 0 ? [hint, ...commands] : [])].join("\n");
}

/** @throws UsageError that names the first of the options that is absent */
function required<Name extends keyof Options>(options: Options, ...names: Name[]): Record<Name, string> {
  for (const name of names) if (!options[name]) throw new UsageError(`--${name} is missing.`);
  return options as Record<Name, string>;
}

const optionByField: Record<string, string> = {
  user_id: "--user",
  project_id: "--id",
  name: "--name",
  role: "--role",
};
