import type { Command } from "commander";
import { signedIn } from "./api.ts";
import { requireWholeId } from "./find.ts";
import type { Globals } from "./globals.ts";
import { relativeTime, table } from "./table.ts";
import { confirm, jsonText, note, print } from "./terminal.ts";

export function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .summary("API keys: create, list, delete")
    .description(
      "API keys: for jobs and scripts. They do not expire, and act with your permissions until they are deleted.",
    );

  keys
    .command("create")
    .summary("make a key; it is shown this once")
    .description("Makes an API key and prints it, this once. Wants a sign-in with a JWT: a key cannot make keys.")
    .argument("<name>", "what it is for, 1-100 characters")
    .addHelpText(
      "after",
      `\nExamples:\n  $ svc keys create "CI of the shop"\n  $ SVC_API_KEY=$(svc keys create ci)   # the key alone is on stdout`,
    )
    .action(async (name: string, _options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const key = await (await signedIn(globals)).createApiKey({ name });
      note(`Made the key ${key.id}. It is shown this once, keep it safe. To end it: svc keys delete ${key.id}`);
      print(json ? jsonText(key) : key.key);
    });

  keys
    .command("list")
    .summary("list your keys")
    .description("Lists your API keys, oldest first, with when they were used last.")
    .action(async (_options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const list = await (await signedIn(globals)).listApiKeys();
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("You have no API key. Make one: svc keys create <name>");
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
    .summary("end a key, at once")
    .description("Deletes an API key: it is refused from the very next request on.")
    .argument("<id>", "the whole id of the key")
    .option("-y, --yes", "do not ask")
    .action(async (id: string, { yes }: { yes?: boolean }, command: Command) => {
      const api = await signedIn(command.optsWithGlobals());
      const whole = requireWholeId(id);
      await confirm(`Deleting the key ${whole}`, yes);
      await api.deleteApiKey(whole);
      note(`Deleted the key ${whole}.`);
    });
}
