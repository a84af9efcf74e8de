import { requireStdout } from "../../packages/cli/src/terminal/checked-output.ts";
import { command, UsageError } from "../command/command.ts";
import { DEFAULT_TOKEN_SECONDS, mintToken } from "../command/mint-token.ts";
import { readSettings, settingRows } from "../command/settings.ts";

const help = {
  name: "npm run --silent token",
  about: "Prints a JWT of a user of the local run, and nothing else. The service accepts a lifetime of up to an hour.",
  options: {
    user: { value: "<id>", about: "user id, any text", isRequired: true },
    "expires-in": {
      value: "<seconds>",
      about: "lifetime; a negative number gives an expired token",
      fallback: String(DEFAULT_TOKEN_SECONDS),
    },
  },
  settings: settingRows("DATA_DIR", "JWT_SECRET"),
  examples: [
    "npm run --silent token -- --user demo-user",
    "export TOKEN=$(npm run --silent token -- --user alice --expires-in 600)",
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async (options) => {
    const expiresIn = options["expires-in"];
    if (!/^-?\d{1,9}$/.test(expiresIn)) throw new UsageError("--expires-in must be whole seconds.");
    requireStdout();
    return mintToken(readSettings().jwtSecret, options.user, Number(expiresIn));
  });
}
