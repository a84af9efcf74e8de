import { settings as functionSettings } from "../../functions/foundation/platform/env.ts";
import { command } from "../command/command.ts";
import { missingKeys } from "../command/issuer-keys.ts";
import { mintToken } from "../command/mint-token.ts";
import { readSettings, settingRows } from "../command/settings.ts";
import { startCommand } from "../command/shell-commands.ts";
import { startPage } from "../command/start-page.ts";
import { stopOnSignal } from "../command/stop-on-signal.ts";
import { demoUser, seedDemoUser } from "../demo/demo-user.ts";
import { logToFile } from "../emulator/log-file.ts";
import { startService } from "../emulator/service.ts";

const help = {
  name: "npm start",
  about: `Runs the whole service on this machine: API, console, queues and tables, on 127.0.0.1 only.
Prints addresses, a token and commands to try. Its last line is "ready <base URL>". Ctrl-C stops it; the data is kept.`,
  settings: settingRows(
    "PORT",
    "SQS_PORT",
    "DATA_DIR",
    "JWT_SECRET",
    "WEBHOOK_ALLOW_CIDRS",
    "RETRY_SCHEDULE",
    "DELIVERY_BATCH_SIZE",
    "LAST_USED_RESOLUTION_SECONDS",
    "EVENTS",
    "OIDC_ISSUERS",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_SQS",
    "AWS_ENDPOINT_URL_SNS",
  ),
  examples: ["npm start", "PORT=8080 DATA_DIR=.local/second npm start", "RETRY_SCHEDULE=1,2,4 npm start"],
};

export async function main(): Promise<void> {
  await command(help, async () => {
    const settings = readSettings();
    const log = logToFile(settings.dataDir);
    const service = await startService(settings, {
      onEngineExit() {
        console.error(
          "An embedded engine has ended, so the service stops. No data is lost. " +
            `Start again: ${startCommand(settings)}`,
        );
        process.exit(1);
      },
    });
    stopOnSignal(() => service.stop());
    const warning = await missingKeys();
    if (warning) console.error(warning);
    await seedDemoUser();
    const { baseUrl, eventsQueueUrl } = service;
    const token = mintToken(settings.jwtSecret, demoUser.userId);
    const allowedCidrs = functionSettings.webhookAllowCidrs();
    return startPage({
      baseUrl,
      eventsQueueUrl,
      token,
      logPath: log.path,
      settings,
      allowedCidrs,
      isFirstStart: log.isNew,
    });
  });
}
