import { requireStdout } from "../../packages/cli/src/terminal/checked-output.ts";
import { command } from "../command/command.ts";
import { notRunning } from "../command/connect.ts";
import { mintToken } from "../command/mint-token.ts";
import { findRunning } from "../command/running-service.ts";
import { readSettings, settingRows } from "../command/settings.ts";
import { consoleLink } from "../command/start-page.ts";
import { demoUser } from "../demo/demo-user.ts";

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
