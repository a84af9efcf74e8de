import { startPage, trySteps } from "../../../bin/command/start-page.ts";

/* The page that `npm start` prints. That its commands work is proven in local.test.ts. */

const baseUrl = "http://127.0.0.1:3000";
const settings = { dataDir: "/srv/data", isSecretGiven: false };
const page = (changed: Partial<Parameters<typeof startPage>[0]> = {}) =>
  startPage({
    baseUrl,
    settings,
    eventsQueueUrl: "http://127.0.0.1:3001/000000000000/deployment-events",
    token: "aaa.bbb.ccc",
    logPath: "/srv/data/service.log",
    allowedCidrs: ["127.0.0.0/8", "::1/128"],
    isFirstStart: true,
    ...changed,
  });

test("has the addresses, the token and the project in the form that scripts read", () => {
  const lines = page().split("\n");
  // The link has a line of its own, in which a narrow terminal finds it.
  expect(lines.slice(-3)).toEqual([
    "http://127.0.0.1:3000/console/#token=aaa.bbb.ccc",
    "",
    "ready http://127.0.0.1:3000",
  ]);
  expect(lines).toEqual(
    expect.arrayContaining([
      "  API            http://127.0.0.1:3000",
      "  API page       http://127.0.0.1:3000/docs",
      "  events queue   http://127.0.0.1:3001/000000000000/deployment-events",
      "  user           demo-user",
      "  project        01930000-0000-7000-8000-00000000d301",
      "  log            /srv/data/service.log",
      "  export TOKEN=$(DATA_DIR=/srv/data npm run --silent token -- --user demo-user)",
    ]),
  );
});

test("every command of the project carries the data directory", () => {
  const commands = page().match(/^.*npm run --silent (?!svc)\w+.*$/gm) ?? [];
  expect(commands).toHaveLength(4);
  for (const command of commands) expect(command).toMatch(/[ (]DATA_DIR=\/srv\/data npm run/);
});

test("a command that signs tokens needs the secret that was given, which the page does not show", () => {
  const commands = page({ settings: { ...settings, isSecretGiven: true } }).match(/^.*JWT_SECRET=.*$/gm) ?? [];
  expect(commands.map((command) => /npm run --silent (\w+)/.exec(command)?.[1])).toEqual(["token", "demo", "console"]);
});

test("the receiver listens where the webhook points to, before the webhook and the event", () => {
  const commands = trySteps(baseUrl, settings, ["127.0.0.0/8"]).flatMap((step) => step.commands);
  const indexOf = (text: string) => commands.findIndex((command) => command.includes(text));
  expect(commands[indexOf("listen")]).toBe("npm run --silent svc -- listen --port 4000 --count 1 & sleep 3");
  expect(indexOf('"url":"http://127.0.0.1:4000/"')).toBeGreaterThan(indexOf("listen"));
  expect(indexOf("npm run --silent event")).toBeGreaterThan(indexOf('"url"'));
  expect(commands.slice(-2)).toEqual(["wait", expect.stringContaining("/webhooks/$WEBHOOK -H")]);
});

test.each([[[]], [["10.0.0.0/8"]]])(
  "with the allowed ranges %j it offers no receiver on this machine and no demo",
  (allowedCidrs) => {
    expect(page({ allowedCidrs })).not.toMatch(/listen|4000|demo$/m);
  },
);

test("no character of a comment means something to a shell", () => {
  const steps = trySteps(baseUrl, settings, ["127.0.0.0/8"]);
  expect(steps.length).toBeGreaterThanOrEqual(6);
  for (const { about } of steps) expect(about).toMatch(/^[\w ,.]+$/);
});

test("a later start shows no walk, and fits into a terminal of 24 lines", () => {
  const later = page({ isFirstStart: false });
  expect(later).not.toContain("Try it");
  expect(later.split("\n").length).toBeLessThan(24);
});

test("contains the JWT once, so that few lines break on a narrow terminal", () => {
  expect(page().split("aaa.bbb.ccc")).toHaveLength(2);
});
