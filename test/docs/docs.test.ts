import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { settingHelp } from "../../bin/command/settings.ts";
import { deliveryStatuses } from "../../functions/deliveries/line/delivery.ts";
import { contentOf } from "../../functions/deliveries/sending/delivery-content.ts";
import { sampleWebhookEvent } from "../../functions/foundation/events/sample-event.ts";
import { webhookEventNames } from "../../functions/foundation/manifest/events.ts";
import { DEFAULT_SCHEDULE } from "../../functions/foundation/manifest/retry-schedule.ts";
import { settings } from "../../functions/foundation/platform/env.ts";
import { webhookFormats } from "../../functions/webhooks/formats/format.ts";
import { formatOfUrl } from "../../functions/webhooks/formats/format-of-url.ts";
import { everyOption } from "../lib/every-option.ts";

/* What the documents list is complete, and their links lead somewhere. */

const root = join(import.meta.dirname, "../..");
const page = (path: string) => readFileSync(join(root, path), "utf8");

const pages = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...["docs", "bench", "packages"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md") && !/(^|\/)(node_modules|dist)\//.test(name))
      .map((name) => join(folder, name)),
  ),
];

/** The first cell of each row of a page's tables. */
const firstCells = (path: string): string[] =>
  page(path)
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split(/(?<!\\)\|/)[1] ?? "");

const lists = (path: string, name: string): boolean => firstCells(path).some((cell) => cell.includes(`\`${name}\``));

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

const withoutCode = (text: string): string => text.replaceAll(/```[\s\S]*?```/g, "");
const anchorsOf = (path: string): string[] =>
  [...withoutCode(page(path)).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));

test.each(pages)("%s: every link leads to a file and a heading that exist", (path) => {
  const links = [...withoutCode(page(path)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  const broken = links
    .filter((target) => !/^(https?|mailto):/.test(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const found = file === "" ? path : relative(root, join(root, dirname(path), file));
      if (!existsSync(join(root, found))) return true;
      return anchor !== undefined && found.endsWith(".md") && !anchorsOf(found).includes(anchor);
    });
  expect(broken).toEqual([]);
});

test.each(pages)("%s holds no remains of an edit", (path) => {
  expect(page(path)).not.toMatch(/^[<>=]{7}/m);
  expect(page(path)).not.toMatch(/\bTODO\b|\bFIXME\b/);
});

test.each(optionsOf(everyOption))("docs/configuration.md lists the stage option %s", (option) => {
  expect(lists("docs/configuration.md", option)).toBe(true);
});

/** Options are listed one by one, or with their parts in one row. */
function optionsOf(stage: object): string[] {
  return Object.entries(stage).flatMap(([name, value]) =>
    ["jwt", "deliveries"].includes(name) ? Object.keys(value).map((part) => `${name}.${part}`) : [name],
  );
}

/** The rows of the table of settings: name, default and explanation. */
const documentedSettings = page("docs/configuration.md")
  .match(/^\| `[A-Z].*$/gm)
  ?.map((row) => row.split(" | ").map((cell) => cell.replaceAll(/^\| |[`]| \|$/g, "")));

test.each(Object.entries(settingHelp))(
  "docs/configuration.md says of %s what help pages say",
  (name, [about, fallback]) => {
    const [, documented, text] = documentedSettings?.find(([each]) => each === name) ?? [];
    expect(documented).toBe(fallback);
    expect(text?.startsWith(about.replaceAll("`", ""))).toBe(true);
  },
);

test("the table of settings has every variable that is read, and no other", () => {
  expect(Object.keys(settings).length).toBeGreaterThan(5);
  const documented = documentedSettings?.flatMap(([name]) => name ?? []) ?? [];
  const source = page("functions/foundation/platform/env.ts") + page("bin/command/settings.ts");
  // Set by the stack, by Lambda or by the local run, not by a person.
  const isInternal =
    /^(STAGE|KEEPS_DATA|AWS_REGION|AWS_LAMBDA_FUNCTION_VERSION|AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY|JWT_SECRET_ARN|SIGNATURE_SECRET_ARN|IMPORTED_KEYS_PEPPER_ARN|API_ADDRESS|CONSOLE_ADDRESS|.*_TABLE|.*_TOPIC_ARN|.*QUEUE_URL.*)$/;
  const names = new Set([...source.matchAll(/"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PORT)"/g)].map(([, name = ""]) => name));
  const unlisted = [...names].filter((name) => !isInternal.test(name) && !documented.includes(name));
  expect(unlisted).toEqual([]);
  expect(documented.filter((name) => !source.includes(name))).toEqual([]);
});

test.each([...webhookEventNames])("docs/webhooks.md describes the event %s", (name) => {
  expect(lists("docs/webhooks.md", name)).toBe(true);
});

test.each([
  "timeout",
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "address_blocked",
  "invalid_response",
  "http_status",
])("docs/webhooks.md explains the error code %s", (code) => expect(lists("docs/webhooks.md", code)).toBe(true));

test.each(deliveryStatuses)("docs/webhooks.md explains the status %s", (status) =>
  expect(lists("docs/webhooks.md", status)).toBe(true),
);

test.each(webhookFormats.filter((format) => format !== "standard"))(
  "docs/webhooks.md has a row for the format %s, and its URL is one of the product",
  (format) => {
    const row =
      page("docs/webhooks.md")
        .split("\n")
        .find((line) => line.includes(` | \`${format}\` | `)) ?? "";
    expect(row).not.toBe("");
    const [, url] = /`(https:[^`]*)`/.exec(row) ?? [];
    if (url !== undefined) expect(formatOfUrl(url.replaceAll(/[<>…]/g, ""))).toBe(format);
  },
);

test("docs/webhooks.md shows the message of a test in Slack, and a delivery's sequence", () => {
  const now = new Date("2026-11-21T04:04:29.027Z");
  const sample = { projectId: "01930000-0000-7000-8000-00000000d301", id: "01a1fc46-ece3-7749-804d-53ab431e8518", now };
  const { body } = sampleWebhookEvent("deploy.started", sample, { test: true });
  const id = "01a1fc46-ece3-7718-84b7-ff6464808948";
  const message = contentOf({ id, event: "deploy.started", body, test: true }, { format: "slack" });
  expect(page("docs/webhooks.md")).toContain(`\n> ${JSON.parse(message.body).text}\n`);
  const { sequence } = contentOf({ id, event: "deploy.succeeded", body }, {});
  expect(page("docs/webhooks.md")).toContain(`X-Service-Delivery: ${id}\nX-Service-Sequence: ${sequence}\n`);
});

test("the statement of docs/webhooks.md keeps the newest state, in whichever order deliveries arrive", () => {
  const [, statement = ""] = /```sql\n([\s\S]*?)```/.exec(page("docs/webhooks.md")) ?? [];
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE deployments (id TEXT PRIMARY KEY, event TEXT, sequence BIGINT)");
  const arrived = [
    ["deploy.failed", 17952338690271],
    ["deploy.started", 17952338690270],
    ["deploy.failed", 17952338690271],
  ] as const;
  for (const [$2, $3] of arrived) database.prepare(statement).run({ $1: "d1", $2, $3 });
  const rows = database.prepare("SELECT * FROM deployments").all();
  expect(rows).toEqual([{ id: "d1", event: "deploy.failed", sequence: 17952338690271 }]);
  database.close();
});

/** `18000` → `5 h`, in the largest unit that divides it. */
function inWords(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

test("docs/webhooks.md gives the retry schedule, its attempts and its hours", () => {
  const hours = DEFAULT_SCHEDULE.reduce((sum, wait) => sum + wait, 0) / 3600;
  const waits = new Intl.ListFormat("en-GB").format(DEFAULT_SCHEDULE.map(inWords));
  expect(page("docs/webhooks.md").replaceAll(/\s+/g, " ")).toContain(
    `after ${waits}, each ± 20 %: ${DEFAULT_SCHEDULE.length + 1} attempts in ${hours.toFixed(1)} hours`,
  );
});

test("docs/configuration.md has the default retry schedule, for a local run and for a stage", () => {
  expect(page("docs/configuration.md")).toContain(`| \`RETRY_SCHEDULE\` | \`${DEFAULT_SCHEDULE.join(",")}\` |`);
  expect(page("docs/configuration.md")).toContain(`| \`deliveries.retrySchedule\` | ${DEFAULT_SCHEDULE.join(", ")} |`);
});

test.each(pages.filter((path) => !/^bench/.test(path)))(
  "%s leaves the hours of the retry schedule to docs/webhooks.md",
  (path) => {
    expect(page(path).match(/(?:retr|responses|fails for good)[^.\n]* (?:for|after|to) \d+ hours/g) ?? []).toEqual([]);
  },
);

test.each(pages)("%s uses the field's words for keys and messages", (path) => {
  const coined =
    /\bnarrow (key|one|credential)|\bearlier (key|secret)|\b[aA] trust\b|\btrusts that\b|hand-over|wake-up call\b|key (ends|ended)\b/g;
  expect(page(path).match(coined) ?? []).toEqual([]);
});

test("docs/decisions.md has at most forty decisions, by theme, each with the rejected alternative", () => {
  const themes = page("docs/decisions.md").split(/^## /m).slice(1);
  const rows = themes.flatMap((theme) => theme.split("\n").filter((line) => /^\| (?!decision \|)/.test(line)));
  expect(themes.length).toBeGreaterThan(4);
  expect(rows.length).toBeLessThanOrEqual(40);
  expect(rows.filter((row) => !/^\| [^|]{10,} \| [^|]{10,} \|$/.test(row))).toEqual([]);
});

test("the paths that the documents name exist", () => {
  const named = pages.flatMap((path) =>
    [...page(path).matchAll(/`((?:bin|lib|functions|packages|test|bench|docs)\/[\w./-]+\.\w+)`/g)].map(
      ([, name = ""]) => [path, name] as const,
    ),
  );
  const missing = named.filter(([, name]) => !existsSync(join(root, name)));
  expect(missing).toEqual([]);
});

test("no two commands in a row stand in two pages: a block of commands has one place", () => {
  // The runbook may repeat a command: an operator should not have to follow a link at night.
  const pairs = pages
    .filter((path) => path !== "docs/runbook.md")
    .flatMap((path) =>
      [...page(path).matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].flatMap(([, block = ""]) => {
        const lines = block.split("\n").map((line) => line.replace(/\s+#.*/, "").trim());
        return lines.slice(1).map((line, index) => ({ path, pair: `${lines[index]}\n${line}` }));
      }),
    );
  const isCommands = (pair: string) => /^[a-z].+\n[a-z]/i.test(pair);
  const repeated = pairs.filter(
    ({ path, pair }) => isCommands(pair) && pairs.some((other) => other.pair === pair && other.path !== path),
  );
  expect(repeated).toEqual([]);
});

test("the ways to try a receiver on one's machine stand in one page", () => {
  const naming = (command: string) => pages.filter((path) => page(path).includes(command));
  expect(naming("svc listen --forward http")).toEqual(["docs/webhooks.md"]);
  expect(naming("svc listen --port 4000`")).toEqual(["docs/webhooks.md"]);
});

test.each(pages)(
  "%s: commands can be pasted: a placeholder is in quotes, and no response of a function goes to /dev/stdout",
  (path) => {
    const blocks = [...page(path).matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, block = ""]) => block);
    // In a line of text, only whole commands: `svc keys roll <id>` is how a command is named.
    const inText = [...withoutCode(page(path)).matchAll(/`((?:aws|curl|gh) [^`\n]+)`/g)].map(([, code = ""]) => code);
    const unquoted = [...blocks, ...inText]
      .flatMap((code) => code.replaceAll(/"(?:\\.|[^"\\])*"|'[^']*'|(?<!\S)#.*/g, "").split("\n"))
      .filter((line) => /<[a-z][^<>]*>/i.test(line));
    expect(unquoted).toEqual([]);
    // The AWS CLI writes its own status there too, over the response if it is a file.
    expect(blocks.filter((block) => block.includes("/dev/stdout"))).toEqual([]);
    const refused = blocks.filter((block) => spawnSync("bash", ["-n"], { input: block }).status !== 0);
    expect(refused).toEqual([]);
  },
);

test("no page and no workflow installs a package of this repository by its name: none is in a registry", () => {
  const workflows = readdirSync(join(root, "docs/github-actions")).map((name) => join("docs/github-actions", name));
  const named = [...pages, ...workflows].filter((path) =>
    /\b(npm|npx)\b.*[ "']@deployment-webhooks\//.test(page(path)),
  );
  expect(named).toEqual([]);
});
