import { once } from "node:events";
import net from "node:net";
import { commandHere } from "../support/command-here.ts";
import { listening } from "../support/listening.ts";
import { freshDataDir, startLocalRun, startProgram } from "../support/local-run.ts";
import { send } from "../support/service.ts";

/* `npm run issuer`: the tokens of a CI job, tried on one machine. */

const DATA_DIR = freshDataDir();

async function startIssuer() {
  const child = startProgram(["bin/run.cjs", "issuer", "--port", "0"], { DATA_DIR });
  let page = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    page += text;
  });
  while (!page.includes("&audience=")) await once(child.stdout, "data");
  const find = (pattern: RegExp) => pattern.exec(page)?.[1] ?? "";
  return {
    child,
    setting: find(/^OIDC_ISSUERS='(.*)' /m),
    address: find(/_URL='(.*)'$/m),
    credential: find(/_REQUEST_TOKEN=(\S+)$/m),
    audience: find(/&audience=(\w+)"/),
  };
}

test("issuer gives a job a token that the service accepts as soon as the workflow is trusted", async () => {
  const { child, setting, address, credential, audience } = await startIssuer();
  const run = await startLocalRun({ DATA_DIR, OIDC_ISSUERS: setting });
  const call = (token: string, path: string, body?: object) =>
    send(`${run.baseUrl}/v1/projects/${run.projectId}/${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
  const jobToken = async (claims = "", requestToken = credential) => {
    const headers = { authorization: `Bearer ${requestToken}` };
    return send(`${address}${claims}&audience=${audience}`, { headers });
  };
  const { value } = (await jobToken()).body;
  expect((await call(value, "webhooks")).body.error.code).toBe("workflow_not_trusted");
  const trust = {
    issuer: "ci",
    repository_id: "1296269",
    ref: "refs/heads/main",
    permissions: ["webhooks:read"],
  };
  expect((await call(run.token, "trusted-workflows", trust)).status).toBe(201);
  expect((await call(value, "webhooks")).body).toEqual({ data: [] });
  const other = (await jobToken("&ref=refs/heads/other&iss=https://other.example&exp=1")).body.value;
  expect((await call(other, "webhooks")).body.error.code).toBe("workflow_not_trusted");
  expect((await jobToken("", "wrong")).status).toBe(401);
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([0, null]);
  await run.end("SIGKILL");
});

test("issuer with a port that is not valid, or in use, exits with 1 and names the mistake", async () => {
  const issuer = (port: string) => commandHere("issuer", ["--port", port], { DATA_DIR });
  const { port } = new URL(await listening(net.createServer()));
  expect([await issuer("65536"), await issuer(port)]).toEqual([
    { code: 1, stdout: "", stderr: '--port must be a whole number from 0 to 65535, not "65536".\n' },
    {
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(`^Port ${port} is in use .* choose another port with --port\\.`),
    },
  ]);
});
