import { useService } from "../../support/service.ts";
import { type Environment, freshConfigHome } from "../../support/svc.ts";
import { svcHere } from "../../support/svc-here.ts";

/* The project of commands without --project, and the commands that messages advise. */

const service = useService({});

/** A member of two projects with one name. */
async function newMember() {
  const user = service.user();
  const projects = [await service.project(user.userId), await service.project(user.userId)];
  const env: Environment = {
    SVC_BASE_URL: service.baseUrl,
    SVC_API_KEY: user.token,
    XDG_CONFIG_HOME: freshConfigHome(),
  };
  const [first = "", second = ""] = projects;
  return { user, env, first, second };
}

const projectOf = async (args: string[], env: Environment) => {
  const { code, stdout, stderr } = await svcHere(["service-accounts", "create", "ci", "--role", "viewer", ...args], {
    env,
  });
  return code === 0 ? /--project (\S+)/.exec(stderr)?.[1] : `${stdout}${stderr}`;
};

test("the project is that of --project, of SVC_PROJECT, of svc projects use, in this order", async () => {
  const { env, first, second } = await newMember();
  expect(await projectOf([], env)).toContain("You are a member of several projects.");
  const chosen = await svcHere(["projects", "use", first], { env });
  expect(chosen).toMatchObject({ code: 0, stderr: `Commands now use the project Project (${first}).\n` });
  expect(await projectOf([], env)).toBe(first);
  expect(await projectOf([], { ...env, SVC_PROJECT: second })).toBe(second);
  expect(await projectOf(["--project", first], { ...env, SVC_PROJECT: second })).toBe(first);
  const input = JSON.stringify({ project: "Shop", webhooks: [] });
  const applied = await svcHere(["apply", "-f", "-"], { env: { ...env, SVC_PROJECT: second }, input });
  expect(applied.stderr).toContain('No project named "Shop".');
  expect((await svcHere(["apply", "-f", "-", "--project", first], { env, input })).code).toBe(0);
});

test("svc projects use rejects a project of others, and keeps the choice", async () => {
  const { user, env, first, second } = await newMember();
  const { first: foreign } = await newMember();
  await svcHere(["login", "--with-token"], { env, input: user.token });
  await svcHere(["projects", "use", first], { env });
  // A choice for another service does not change it.
  const SVC_BASE_URL = service.baseUrl.replace("127.0.0.1", "localhost");
  await svcHere(["projects", "use", second], { env: { ...env, SVC_BASE_URL } });
  expect((await svcHere(["projects", "use", foreign], { env })).code).toBe(4);
  expect(await projectOf([], env)).toBe(first);
});

test("a key scoped to one project needs no --project, also without projects:read, unlike one scoped to two", async () => {
  const { user, env, first, second } = await newMember();
  const list = async (project_ids: string[]) => {
    const { body } = await user.api.post("/v1/api-keys", { name: "ci", permissions: ["webhooks:read"], project_ids });
    return svcHere(["webhooks", "list", "--json"], { env: { ...env, SVC_API_KEY: body.data.key } });
  };
  expect(await list([second])).toMatchObject({ code: 0, stdout: "[]\n" });
  expect(await list([first, second])).toMatchObject({ code: 1, stdout: "" });
});

/** The commands in a message: from `svc` to the end of the line or a comment. */
const commandsIn = (text: string): string[] => text.match(/\bsvc [a-z].*?(?=$| {3}#| && )/gm) ?? [];

test("every command that a message advises can be pasted", async () => {
  const { env } = await newMember();
  const printed: string[] = [];
  const run = async (...args: string[]) => {
    const { stdout, stderr } = await svcHere(args, { env, showsSecret: true });
    printed.push(stderr, stdout);
    return stderr;
  };
  const several = await run("webhooks", "list");
  const [choose = ""] = commandsIn(several);
  await run(...choose.split(" ").slice(1));
  await run("webhooks", "list");
  await run("keys", "list");
  await run("webhooks", "show", "0123");
  await run("webhooks", "create", "https://example.com/hook", "--events", "deploy.failed");
  await run("webhooks", "update", "--disable");
  await run("webhooks", "show");
  await run("deliveries", "recover", "--since", "1h", "--dry-run");
  await run("service-accounts", "create", "ci", "--role", "viewer");
  const advised = [...new Set(printed.flatMap(commandsIn))];
  // These two would wait for a receiver.
  const isSending = (command: string) => /^svc webhooks (test|certify)/.test(command);
  const project = choose.split(" ").at(-1);
  expect(advised.filter(isSending).map((each) => each.split(" --project ")[1])).toEqual([project, project]);
  const commands = advised.filter((each) => !isSending(each));
  expect(commands.length).toBeGreaterThan(6);
  for (const command of commands) {
    const { SVC_API_KEY, SVC_BASE_URL } = env;
    const elsewhere = { SVC_API_KEY: SVC_API_KEY ?? "", SVC_BASE_URL: SVC_BASE_URL ?? "" };
    const { code, stderr } = await svcHere(command.split(" ").slice(1), { env: elsewhere, showsSecret: true });
    expect([command, code, stderr]).toEqual([command, 0, expect.anything()]);
  }
});
