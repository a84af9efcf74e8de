import { randomBytes, randomUUID } from "node:crypto";
import { command } from "../command/command.ts";
import { PORTS, readNumber, readSettings, settingRows } from "../command/settings.ts";
import { scriptCommand, startCommand } from "../command/shell-commands.ts";
import { StartError } from "../command/start-error.ts";
import { stopOnSignal } from "../command/stop-on-signal.ts";
import { demoJob, startDemoIssuer } from "../demo/demo-issuer.ts";
import { demoUser } from "../demo/demo-user.ts";
import { portInUse } from "../emulator/engines.ts";

const AUDIENCE = "deployments";

const help = {
  name: "npm run --silent issuer",
  about: `Runs the OIDC issuer of a CI system on this machine, whose claims are named as GitHub's, and prints how to start the
service with it, trust a workflow and get the token of a job. Ctrl-C stops it.`,
  options: { port: { value: "<port>", about: "port on 127.0.0.1; 0 = any free port", fallback: "4999" } },
  settings: settingRows("DATA_DIR", "PORT", "SQS_PORT", "JWT_SECRET"),
  examples: ["npm run --silent issuer"],
} as const;

export async function main(): Promise<void> {
  await command(help, async (given) => {
    const port = readNumber("--port", given.port, 0, PORTS);
    const settings = readSettings();
    const requestToken = randomBytes(24).toString("base64url");
    const options = { port, keyName: randomUUID(), requestToken };
    const issuer = await startDemoIssuer("RS256", options).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "EADDRINUSE" ? new StartError(portInUse("--port", port)) : error;
    });
    stopOnSignal(async () => issuer.stop());
    const entry = { name: "ci", issuer: issuer.url, jwks_uri: issuer.jwksUri, audience: AUDIENCE };
    return `The issuer runs at ${issuer.url}. Paste into other terminals, in the project's folder.

# start the service, which accepts its tokens
OIDC_ISSUERS='${JSON.stringify([entry])}' ${startCommand(settings)}

# trust the workflows of ${demoJob.repository} on its main branch
${scriptCommand("token", `--user ${demoUser.userId}`, settings)} | npm run --silent svc -- login --local --with-token
npm run --silent svc -- workflows trust ${demoJob.repository_id} --issuer ci --ref ${demoJob.ref} --permission webhooks:read

# the environment of a job; parameters of the address replace its claims, such as ref=refs/heads/other
export ACTIONS_ID_TOKEN_REQUEST_URL='${issuer.url}/token?ref=${demoJob.ref}'
export ACTIONS_ID_TOKEN_REQUEST_TOKEN=${requestToken}

# its token, valid for five minutes
curl -s "$ACTIONS_ID_TOKEN_REQUEST_URL&audience=${AUDIENCE}" -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN"`;
  });
}
