import type { Command } from "commander";
import { keysIn } from "../../../../functions/identity/api-keys/key-format.ts";
import { usageError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { confirm, jsonText, note, print, printList, readStdin, yesOption } from "../terminal/terminal.ts";
import { connect } from "./api.ts";
import { readConfig } from "./config.ts";
import { requireFullId } from "./find.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import {
  keyTable,
  type LimitOptions,
  limitOptions,
  limitsOf,
  overlapOption,
  overlapSecondsOf,
  printKey,
  projectIdsOf,
} from "./key-options.ts";
import { baseUrlOf } from "./session.ts";
import type { ApiCall, SvcCommand } from "./svc-command.ts";

const keyId = ["<id>", "the full id of the key", requireFullId] as const;
const commandFor = (verb: string, id: string) => `svc keys ${verb} ${id}`;

export function addKeys(program: SvcCommand): void {
  const keys = program
    .command("keys")
    .summary("API keys: create, list, rename, roll, delete")
    .description("API keys, for CI jobs and scripts. A key has your permissions, or fewer, and may expire.");

  type Creation = ApiCall & LimitOptions & OnceOptions & { project?: string[] };
  limitOptions(
    keys
      .command("create")
      .summary("create a key; it is shown only once")
      .description("Creates an API key and prints it, only once. Requires a JWT: a key cannot create keys.")
      .argument("<name>", "what the key is for, 1-100 characters")
      .option("--project <ids or names...>", "the projects that the key can see; default: all of yours"),
  )
    .option(...onceOption)
    .addHelpText(
      "after",
      `\nExamples:\n  $ svc keys create "CI of the shop" --permission deliveries:read --project shop --expires 90d\n  $ SVC_API_KEY=$(svc keys create ci)   # stdout contains only the key`,
    )
    .signedIn(async ({ api, ...options }: Creation, name: string) => {
      const project_ids = await projectIdsOf(api, options.project);
      const body = { name, ...limitsOf(options), ...(project_ids && { project_ids }) };
      await printKey(options, () => api.createApiKey(body, onceOf(options)), commandFor);
    });

  keys
    .command("list")
    .summary("list your keys")
    .description("Lists your API keys, oldest first, with their limits and the time of their last use.")
    .option("--last-use", "also show the address of the last use; with --json, also the user agent")
    .signedIn(async ({ api, json, lastUse }: ApiCall & { lastUse?: boolean }) => {
      const list = await api.listApiKeys(lastUse ? { include: "last_use" } : {});
      printList(list, json, "You have no API keys. Create one: svc keys create ci", keyTable);
    });

  keys
    .command("rename")
    .summary("rename a key")
    .description("Changes the name of an API key.")
    .argument(...keyId)
    .argument("<name>", "the new name, 1-100 characters")
    .signedIn(async ({ api, json }, id: string, name: string) => {
      const renamed = await api.updateApiKey(id, { name });
      note(`Renamed the key ${renamed.id}.`);
      if (json) print(jsonText(renamed));
    });

  keys
    .command("roll")
    .summary("replace a key; the new one is shown only once")
    .description(
      "Replaces the secret of an API key and prints the new one, only once. Id, name and limits stay. Requires a JWT.",
    )
    .argument(...keyId)
    .option(...overlapOption)
    .addHelpText(
      "after",
      "\nExamples:\n  $ svc keys roll <id>\n  $ svc keys roll <id> --overlap 0   # revokes all previous secrets now",
    )
    .signedIn(async ({ api, ...options }: ApiCall & { overlap: string }, id: string) => {
      const body = { overlap_seconds: overlapSecondsOf(options.overlap) };
      await printKey(options, () => api.rollApiKey(id, body), commandFor);
    });

  keys
    .command("delete")
    .summary("delete a key, effective immediately")
    .description("Deletes an API key. The service rejects it from the next request on.")
    .argument(...keyId)
    .option(...yesOption)
    .signedIn(async ({ api, yes }: ApiCall & { yes?: boolean }, id: string) => {
      await confirm(`Delete the key ${id}`, yes);
      await api.deleteApiKey(id);
      note(`Deleted the key ${id}.`);
    });

  keys
    .command("revoke-leaked")
    .summary("revoke keys found in a text, also those of others")
    .description("Finds API keys in the text on stdin and revokes them, also those of others. Needs no credential.")
    .option("--prefix <texts...>", "also find keys of an earlier service, which begin like this, for example acme_")
    .addHelpText("after", "\nExamples:\n  $ svc keys revoke-leaked --base-url https://api.example.com < leaked.txt")
    .action(async (_options, command: Command) => revokeLeaked(command.optsWithGlobals()));
}

/** The limit of the API for one request. */
const MAX_CREDENTIALS = 100;

async function revokeLeaked({ json, prefix, ...globals }: Globals & { prefix?: string[] }): Promise<void> {
  const found = keysIn((await readStdin()).toString("utf8"), prefix);
  if (found.length === 0) throw usageError("Found no API key on stdin.", "Pass a text that contains keys: svc_…");
  const api = await connect(globals, { baseUrl: baseUrlOf(globals, readConfig()) });
  for (let from = 0; from < found.length; from += MAX_CREDENTIALS) {
    await api.revokeCredentials({ credentials: found.slice(from, from + MAX_CREDENTIALS) });
  }
  note(
    `Revoked ${found.length === 1 ? "1 key" : `${found.length} keys`}: from now on the service rejects them. It does not say which existed.`,
  );
  if (json) print(jsonText({ received: found.length }));
}
