import { styleText } from "node:util";
import { demoUser } from "../demo/demo-user.ts";
import { allowsLocalReceivers, type LocalSettings } from "./settings.ts";
import { scriptCommand } from "./shell-commands.ts";

type PrintedSettings = Pick<LocalSettings, "dataDir" | "isSecretGiven">;

/** Commands with one sentence about them. */
export interface Step {
  about: string;
  commands: string[];
}

export const LISTEN_PORT = 4000;

/**
 * A walk from a token to a delivery that arrives: to be pasted from top to bottom into one terminal. The sentences become
 * comments in a shell, where some shells run them as commands: letters, commas and full stops only.
 * @param allowedCidrs WEBHOOK_ALLOW_CIDRS: without the loopback the receiver on this machine cannot be called
 */
export function trySteps(baseUrl: string, settings: PrintedSettings, allowedCidrs: string[]): Step[] {
  const { userId, projectId } = demoUser;
  const call = (path: string, body?: object) => {
    const request = `curl -sw '\\n' ${baseUrl}${path} -H "Authorization: Bearer $TOKEN"`;
    if (body === undefined) return request;
    return `${request} \\\n     -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`;
  };
  const webhooks = `/v1/projects/${projectId}/webhooks`;
  const webhook = { url: `http://127.0.0.1:${LISTEN_PORT}/`, events: ["deploy.succeeded"] };
  const steps = [
    {
      about: "a JWT of the demo user, valid for an hour",
      commands: [`export TOKEN=$(${scriptCommand("token", `--user ${userId}`, settings)})`],
    },
    {
      about: "create an API key, which is shown only once",
      commands: [call("/v1/api-keys", { name: "my laptop" })],
    },
    { about: "list your projects, with a JWT or a key in the same header", commands: [call("/v1/projects")] },
  ];
  if (!allowsLocalReceivers(allowedCidrs)) return steps;
  return [
    ...steps,
    {
      about: "start a receiver that prints one delivery and ends",
      commands: [`npm run --silent svc -- listen --port ${LISTEN_PORT} --count 1 & sleep 3`],
    },
    {
      about: "create a webhook that calls it, over plain http, which only a local run allows",
      commands: [`WEBHOOK=$(${call(webhooks, webhook)} | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')`],
    },
    {
      about: "send a deployment event, as the pipeline does, and wait for the delivery",
      commands: [scriptCommand("event", `--project ${projectId} --event deploy.succeeded`, settings), "wait"],
    },
    { about: "delete the webhook", commands: [`${call(`${webhooks}/$WEBHOOK`)} -X DELETE`] },
  ];
}

/** The console of a local run signs in with a token behind `#`, which browsers do not send to servers. */
export const consoleLink = (baseUrl: string, token: string): string => `${baseUrl}/console/#token=${token}`;

interface Page {
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  logPath: string;
  settings: PrintedSettings;
  allowedCidrs: string[];
  /** The walk is shown once: at a later start, the addresses are what one looks for. */
  isFirstStart: boolean;
}

/** The text that `npm start` prints: addresses, and commands that work when pasted. Scripts wait for its last line. */
export function startPage({
  baseUrl,
  eventsQueueUrl,
  token,
  logPath,
  settings,
  allowedCidrs,
  isFirstStart,
}: Page): string {
  const { userId, projectId } = demoUser;
  const style = (name: "bold" | "dim") => (text: string) => styleText(name, text, { stream: process.stdout });
  const [bold, dim] = [style("bold"), style("dim")];
  const indented = (text: string) => text.replaceAll(/^/gm, "  ");
  const steps = trySteps(baseUrl, settings, allowedCidrs).map(
    ({ about, commands }) => `  ${dim(`# ${about}`)}\n${indented(commands.join("\n"))}\n`,
  );
  const tryIt = `${bold("Try it")} ${dim("(paste into another terminal, in the project's folder)")}

${steps.join("\n")}
`;
  const demo = `  ${dim("# every step in one command, with a receiver that verifies the signatures")}
  ${scriptCommand("demo", "", settings)}

`;
  return `
${bold("API keys and deployment webhooks")}

${isFirstStart ? tryIt : ""}${bold("More")}

${allowsLocalReceivers(allowedCidrs) ? demo : ""}  ${dim("# a new link to the console, signed in")}
  ${scriptCommand("console", "", settings)}

${bold("Running")} ${dim("(Ctrl-C stops it. Its data is kept and is there again at the next start.)")}

  API            ${baseUrl}
  API page       ${baseUrl}/docs
  events queue   ${eventsQueueUrl}
  user           ${userId}
  project        ${projectId}
  log            ${logPath}
  console        signed in for an hour:
${consoleLink(baseUrl, token)}

ready ${baseUrl}`;
}
