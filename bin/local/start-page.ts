import { styleText } from "node:util";
import { demoUser } from "./demo-user.ts";

interface Page {
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  logPath: string;
}

/** What `npm start` shows: where things are, and commands that work when pasted. Ends in the line that scripts wait for. */
export function startPage({ baseUrl, eventsQueueUrl, token, logPath }: Page): string {
  const { userId, projectId } = demoUser;
  const title = (text: string) => styleText("bold", text, { stream: process.stdout });
  const dim = (text: string) => styleText("dim", text, { stream: process.stdout });
  return `
${title("API keys and deployment webhooks")}

  API            ${baseUrl}
  console        ${baseUrl}/console/#token=${token}
  events queue   ${eventsQueueUrl}
  user           ${userId}
  project        ${projectId}
  log            ${logPath}

${title("Try it")} ${dim("(another terminal, top to bottom)")}

  export TOKEN=${token}

  ${dim("# an API key, shown this once")}
  curl -s ${baseUrl}/v1/api-keys -H "Authorization: Bearer $TOKEN" \\
       -H "Content-Type: application/json" -d '{"name":"my laptop"}'

  ${dim("# your projects: a JWT or a key, the same header")}
  curl -s ${baseUrl}/v1/projects -H "Authorization: Bearer $TOKEN"

  ${dim("# a webhook: plain http to this machine is allowed here, and only here")}
  curl -s ${baseUrl}/v1/projects/${projectId}/webhooks -H "Authorization: Bearer $TOKEN" \\
       -H "Content-Type: application/json" -d '{"url":"http://127.0.0.1:4000/","events":["deploy.succeeded"]}'

  ${dim("# a deployment event: the webhook is called, signed")}
  npm run --silent event -- --project ${projectId} --event deploy.succeeded

  ${dim("# all of it in one go, with a receiver that verifies")}
  npm run --silent demo

${dim("The token is good for an hour; a new one:")} npm run --silent token -- --user ${userId}
${dim("Ctrl-C stops. Everything is kept and is there again at the next start.")}

ready ${baseUrl}`;
}
