import { command, readOptions, UsageError } from "./local/command.ts";
import { DEFAULT_TOKEN_SECONDS, mintToken } from "./local/mint-token.ts";
import { readSettings } from "./local/settings.ts";

await command("npm run --silent token -- --user <id> [--expires-in <seconds>]", async () => {
  const options = readOptions(["user"], ["expires-in"]);
  const expiresIn = options["expires-in"] ?? String(DEFAULT_TOKEN_SECONDS);
  // A token that has expired already is good for trying out the answer to one.
  if (!/^-?\d{1,9}$/.test(expiresIn)) throw new UsageError("--expires-in takes whole seconds");
  return mintToken(readSettings().jwtSecret, options.user, Number(expiresIn));
});
