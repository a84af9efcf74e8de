import type { Command } from "commander";
import { whoami } from "./account.ts";
import { connect, signedIn } from "./api.ts";
import { readConfig } from "./config.ts";
import { usageError } from "./exit-codes.ts";
import { requireFullId } from "./find.ts";
import type { Globals } from "./globals.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import {
  keyTable,
  type LimitOptions,
  limitOptions,
  limitsOf,
  overlapOption,
  overlapSecondsOf,
  projectIdsOf,
  rolledNote,
} from "./key-options.ts";
import { baseUrlOf } from "./session.ts";
import { confirm, jsonText, note, print, readStdin } from "./terminal.ts";

export function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .summary("API keys: create, list, rename, roll, delete")
    .description("API keys, for CI jobs and scripts. A key has your permissions, or fewer, and may expire.");

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
    .action(async (name: string, _options, command: Command) => {
      const { json, ...options }: Globals & LimitOptions & OnceOptions & { project?: string[] } =
        command.optsWithGlobals();
      const limits = limitsOf(options, new Date());
      const api = await signedIn(options);
      const project_ids = await projectIdsOf(api, options.project);
      const body = { name, ...limits, ...(project_ids && { project_ids }) };
      const key = await api.createApiKey(body, onceOf(options));
      note(`Created the key ${key.id}. Save it now: it is not shown again. Delete it with: svc keys delete ${key.id}`);
      print(json ? jsonText(key) : key.key);
    });

  keys
    .command("list")
    .summary("list your keys")
    .description("Lists your API keys, oldest first, with their limits and the time of their last use.")
    .option("--last-use", "also show the address of the last use; with --json, also the user agent")
    .action(async ({ lastUse }: { lastUse?: boolean }, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const list = await (await signedIn(globals)).listApiKeys(lastUse ? { include: "last_use" } : {});
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("You have no API keys. Create one: svc keys create ci");
      print(keyTable(list));
    });

  keys
    .command("current")
    .summary("show what the credential at hand may do")
    .description(
      "Shows whose credential it is, its permissions and projects, and when it expires. The same as svc whoami.",
    )
    .action(async (_options, command: Command) => whoami(command.optsWithGlobals()));

  keys
    .command("rename")
    .summary("rename a key")
    .description("Changes the name of an API key.")
    .argument("<id>", "the full id of the key")
    .argument("<name>", "the new name, 1-100 characters")
    .action(async (id: string, name: string, _options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const renamed = await (await signedIn(globals)).updateApiKey(requireFullId(id), { name });
      note(`Renamed the key ${renamed.id}.`);
      if (json) print(jsonText(renamed));
    });

  keys
    .command("roll")
    .summary("replace a key; the new one is shown only once")
    .description(
      "Replaces the secret of an API key and prints the new one, only once. Id, name and limits stay. Requires a JWT.",
    )
    .argument("<id>", "the full id of the key")
    .option(...overlapOption)
    .addHelpText(
      "after",
      "\nExamples:\n  $ svc keys roll <id>\n  $ svc keys roll <id> --overlap 0   # revokes all previous secrets now",
    )
    .action(async (id: string, { overlap }: { overlap: string }, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const overlap_seconds = overlapSecondsOf(overlap);
      const rolled = await (await signedIn(globals)).rollApiKey(requireFullId(id), { overlap_seconds });
      note(rolledNote(rolled.id, overlap));
      print(json ? jsonText(rolled) : rolled.key);
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

  keys
    .command("revoke-leaked")
    .summary("revoke keys found in a text, also those of others")
    .description("Finds API keys in the text on stdin and revokes them, also those of others. Needs no credential.")
    .addHelpText("after", "\nExamples:\n  $ svc keys revoke-leaked --base-url https://api.example.com < leaked.txt")
    .action(async (_options, command: Command) => revokeLeaked(command.optsWithGlobals()));
}

/** As documented in SECURITY.md. */
const KEY = /svc_[0-9a-f]{64}/g;
/** The limit of the API for one request. */
const MAX_CREDENTIALS = 100;

async function revokeLeaked({ json, ...globals }: Globals): Promise<void> {
  const text = (await readStdin()).toString("utf8");
  const found = [...new Set(text.match(KEY) ?? [])];
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
