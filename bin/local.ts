import { command } from "./local/command.ts";
import { demoUser, seedDemoUser } from "./local/demo-user.ts";
import { logToFile } from "./local/log-file.ts";
import { mintToken } from "./local/mint-token.ts";
import { startService } from "./local/service.ts";
import { readSettings } from "./local/settings.ts";
import { startPage } from "./local/start-page.ts";
import { stopOnSignal } from "./local/stop-on-signal.ts";

/* `npm start`: the whole service on this machine. */

await command("npm start", async () => {
  const settings = readSettings();
  const logPath = logToFile(settings.dataDir);
  const service = await startService(settings, {
    onEngineExit() {
      console.error(
        "The embedded DynamoDB engine has ended, so the service ends too. Start it again: nothing is lost.",
      );
      process.exit(1);
    },
  });
  stopOnSignal(() => service.stop());
  await seedDemoUser();
  const { baseUrl, eventsQueueUrl } = service;
  return startPage({ baseUrl, eventsQueueUrl, token: mintToken(settings.jwtSecret, demoUser.userId), logPath });
});
