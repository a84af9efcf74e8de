import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { tools } from "../../packages/cli/src/mcp/tools.ts";
import { listening } from "../support/listening.ts";
import { svc } from "../support/svc.ts";
import { commands, refusedKeywords, sessions } from "./commands.ts";

/* svc as a program, with what people have typed and set. */

const cellsOf = (line: string) => line.split("|").map((cell) => cell.trim());
const rowsOf = (text: string) => text.trim().split("\n").map(cellsOf);
const settingOf = (text: string) => [text.split("=")[0] ?? "", text.replace(/^[^=]*=/, "")];

/** A JWT that expires in some seconds. Nothing verifies it. */
function jwt(seconds: number, claims: object = {}): string {
  const all = { iss: "https://ci.test", aud: "deployments", exp: Math.floor(Date.now() / 1000) + seconds, ...claims };
  return ["{}", JSON.stringify(all), "{}"].map((part) => Buffer.from(part).toString("base64url")).join(".");
}

const [project_id, deployment_id] = ["01930000-0000-7000-8000-00000000d301", "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11"];
const renewed = jwt(300, { repository_id: "1" });
const key = `svc_${"0f".repeat(32)}`;
const places: Record<string, string> = {
  key,
  braced: "$" + "{SVC_API_KEY}",
  crlf: "\r\n",
  invisible: "\u200b",
  utf16: [...key].join("\0"),
  jwt: jwt(60),
  ending: jwt(5, { repository_id: "1" }),
  wait: `deployments wait ${deployment_id} --project ${project_id} --timeout 90s`,
  call: '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_projects","arguments":{}}}',
};
const filled = (text: string) =>
  text
    .replaceAll(/\{ping (\w+)\}/g, '{"jsonrpc":"2.0","id":$1,"method":"ping"}')
    .replaceAll(/\{(\w+)\}/g, (whole, name: string) => places[name] ?? whole);

/** Answers as the API: what the credential may do, and to the renewed token of a job the end of a deployment. */
function answer({ url = "", headers }: http.IncomingMessage, response: http.ServerResponse): void {
  const send = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
  const isRenewed = headers.authorization === `Bearer ${renewed}`;
  const event = { id: "1", event: "deploy.succeeded", project_id, deployment_id, timestamp: "2026-11-21T04:04:29Z" };
  if (url === "/token?v=2&audience=deployments") send(200, { value: renewed });
  else if (url === "/v1/api-keys/current")
    send(200, { data: { type: "api_key", permissions: [], project_ids: null, expires_at: null } });
  else if (isRenewed) send(200, { data: [{ ...event, payload: { data: {} } }] });
  else send(401, { error: { code: "token_expired", message: "The JWT has expired.", request_id: "r" } });
}

const asked: string[] = [];
const homes = mkdtempSync(join(tmpdir(), "commands-"));
afterAll(() => rmSync(homes, { recursive: true, force: true }));
beforeAll(async () => {
  const fixture = (name: string) => readFileSync(join(import.meta.dirname, "../fixtures", name));
  const proxy = http.createServer().on("connect", ({ url = "" }, socket) => {
    asked.push(url);
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  const tls = https.createServer({ cert: fixture("tls-cert.pem"), key: fixture("tls-key.pem") }, answer);
  places.service = await listening(http.createServer(answer));
  places.tls = (await listening(tls)).replace("http:", "https:");
  places.proxy = (await listening(proxy)).replace("http://", "");
});

/** Creates the files of the settings in a new home. @returns the variables, and the other settings */
function prepare(settings: string) {
  const home = mkdtempSync(join(homes, "home-"));
  const create = (name: string, write: (path: string) => void) => {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    write(join(home, name));
  };
  const env: Record<string, string> = { SVC_BASE_URL: places.service ?? "", XDG_CONFIG_HOME: home };
  const all: Record<string, string> = Object.fromEntries(settings.split("; ").filter(Boolean).map(settingOf));
  const { stdin = "", asked, kept, ...others } = all;
  for (const [name, value] of Object.entries(others)) {
    const [kind = "", path] = name.split(" ");
    if (path === undefined) env[kind] = filled(value);
    else create(path, (to) => (kind === "link" ? symlinkSync(value, to) : writeFileSync(to, value)));
  }
  return { home, env, input: filled(stdin), asked, kept };
}

test.each(rowsOf(commands))("%s (%s)", async (...[, , settings = "", command = "", code, stderr = ""]) => {
  asked.splice(0);
  const { home, env, input, kept, asked: expected } = prepare(settings);
  const result = await svc(filled(command).split(" "), { env, input });
  expect(result).toMatchObject({ code: Number(code), stderr: expect.stringContaining(filled(stderr)) });
  if (expected !== undefined) expect([...new Set(asked)]).toEqual(expected === "" ? [] : [expected]);
  if (kept === undefined) return;
  expect(lstatSync(join(home, kept)).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(home, kept), "utf8")).toContain(key);
});

/** Returns the answers of `svc mcp` to these lines, after it is initialized. */
async function answersTo(lines: string, env: Record<string, string>) {
  const initialize =
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}';
  const { stdout } = await svc(["mcp"], { env, input: `${initialize}\n${lines}` });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ id }) => id !== 0);
}

test.each(rowsOf(sessions))("svc mcp answers %s (%s)", async (...[, , lines = "", expected = "", settings = ""]) => {
  const answers = await answersTo(filled(lines).replaceAll("¶", "\n"), prepare(settings).env);
  const shown = answers.map(({ id, error, result }) => `${id} ${error?.code ?? result.content?.[0].text ?? "result"}`);
  const parts = expected.split("; ").map((text) => [filled(text).split(" ")[0], filled(text).replace(/^\S+ /, "")]);
  expect(shown).toHaveLength(parts.length);
  for (const [id, text = ""] of parts) expect(shown.find((each) => each.startsWith(`${id} `))).toContain(text);
});

test.each(rowsOf(refusedKeywords))("no schema of a tool has %s (%s), and each has all properties", async (keyword) => {
  const [list] = await answersTo('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', prepare("").env);
  const withoutNames = JSON.stringify(list, (name, value) => (name === "properties" ? Object.values(value) : value));
  expect(withoutNames).not.toContain(`"${keyword}":`);
  for (const { input, name } of tools) {
    const shown = list.result.tools.find((tool: { name: string }) => tool.name === name);
    expect(Object.keys(shown.inputSchema.properties)).toEqual(
      Object.keys((input as unknown as { shape: object }).shape),
    );
  }
});
