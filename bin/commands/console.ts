import { requireStdout } from "../../packages/cli/src/checked-output.ts";
import { command } from "../local/command.ts";
import { notRunning } from "../local/connect.ts";
import { demoUser } from "../local/demo-user.ts";
import { mintToken } from "../local/mint-token.ts";
import { findRunning } from "../local/running-service.ts";
import { readSettings, settingRows } from "../local/settings.ts";
import { consoleLink } from "../local/start-page.ts";

const help = {
  name: "npm run --silent console",
  about: "Prints a link that opens the console of the running service, signed in for an hour.",
  options: { user: { value: "<id>", about: "user id, any text", fallback: demoUser.userId } },
  settings: settingRows("DATA_DIR", "JWT_SECRET"),
  examples: ["npm run --silent console", "npm run --silent console -- --user alice"],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ user }) => {
    requireStdout();
    const settings = readSettings();
    const running = await findRunning(settings.dataDir);
    if (!running) throw notRunning(settings);
    return consoleLink(running.baseUrl, mintToken(settings.jwtSecret, user));
  });
}
