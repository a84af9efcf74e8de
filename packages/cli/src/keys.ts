import type { Command } from "commander";
import { signedIn } from "./api.ts";
import { requireFullId } from "./find.ts";
import type { Globals } from "./globals.ts";
import { relativeTime, table } from "./table.ts";
import { confirm, jsonText, note, print } from "./terminal.ts";

export function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .summary("API keys: create, list, delete")
    .description(
      "API keys, for CI jobs and scripts. A key has your permissions and does not expire until you delete it.",
    );

  keys
    .command("create")
    .summary("create a key; it is shown only once")
    .description("Creates an API key and prints it, only once. Requires a JWT: a key cannot create keys.")
    .argument("<name>", "what the key is for, 1-100 characters")
    .addHelpText(
      "after",
      `\nExamples:\n  $ svc keys create "CI of the shop"\n  $ SVC_API_KEY=$(svc keys create ci)   # stdout contains only the key`,
    )
    .action(async (name: string, _options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const key = await (await signedIn(globals)).createApiKey({ name });
      note(`Created the key ${key.id}. Save it now: it is not shown again. Delete it with: svc keys delete ${key.id}`);
      print(json ? jsonText(key) : key.key);
    });

  keys
    .command("list")
    .summary("list your keys")
    .description("Lists your API keys, oldest first, with the time of their last use.")
    .action(async (_options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const list = await (await signedIn(globals)).listApiKeys();
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("You have no API keys. Create one: svc keys create <name>");
      const rows = list.map(({ id, name, key_prefix, last_used_at, created_at }) => [
        id,
        name,
        `${key_prefix}…`,
        relativeTime(last_used_at),
        relativeTime(created_at),
      ]);
      print(table(["id", "name", "key", "last used", "created"], rows));
    });

  keys
    .command("delete")
    .summary("delete a key, effective immediately")
    .description("Deletes an API key. The service rejects it from the next request on.")
    .argument("<id>", "the full id of the key")
    .option("-y, --yes", "do not ask for confirmation")
    .action(async (id: string, { yes }: { yes?: boolean }, command: Command) => {
      const api = await signedIn(command.optsWithGlobals());
      const fullId = requireFullId(id);
      await confirm(`Delete the key ${fullId}`, yes);
      await api.deleteApiKey(fullId);
      note(`Deleted the key ${fullId}.`);
    });
}
