import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gatewayResponses } from "../../functions/foundation/manifest/gateway-responses.ts";

/* docs/unproven.md lists everything that is believed and not seen on AWS, each with the command that shows it. */

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const unproven = read("docs/unproven.md");

const rows = unproven
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| believed |"))
  .map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

/** Words that mark something as believed and not seen. */
const admission =
  /\b(not (yet )?(been )?(run|seen|tried|measured|confirmed|verified)\b|was measured on AWS|not documented|does not document|assume[ds]? (that|to)\b|are assumed)/i;

interface Section {
  /** Path of the page from `docs/`, with the anchor of the heading. */
  anchor: string;
  text: string;
}

const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

function sectionsOf(page: string): Section[] {
  const parts = read(`docs/${page}`).split(/^(?=#+ )/m);
  return parts.map((text) => ({ anchor: `${page}#${anchorOf(text.split("\n", 1)[0] ?? "")}`, text }));
}

const handWritten = ["deployment.md", "deploying-from-github.md", "runbook.md", "scale.md", "decisions.md"];
const admitting = handWritten.flatMap(sectionsOf).filter(({ text }) => admission.test(text));

test.each(admitting.map(({ anchor }) => anchor))("the section %s, which admits something, has a row", (anchor) => {
  expect(unproven).toContain(`](${anchor})`);
});

const sources = ["lib", "functions/foundation/manifest"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`),
);

test("source files that rely on something that AWS does not document are named", () => {
  const undocumented = sources.filter((path) => /not documented|does not document/.test(read(path)));
  expect(undocumented.length).toBeGreaterThan(0);
  expect(undocumented.filter((path) => !unproven.includes(path))).toEqual([]);
});

test("the names of checks are those of the smoke test", () => {
  const checks = read("bin/smoke/operator-checks.ts");
  const named = [...unproven.matchAll(/(?:check|group) \*([^*]+)\*/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(1);
  for (const name of named) expect(checks).toContain(name);
});

test("the command for the firewall looks for a text of its response, and sends more requests than its limit", () => {
  const [, , command = ""] = rows.find(([believed]) => believed?.startsWith("The firewall's block")) ?? [];
  const [, text = ""] = /grep -m 1 '([^']+)'/.exec(command) ?? [];
  expect(text).not.toBe("");
  expect(gatewayResponses.WAF_FILTERED.message).toContain(text);
  const [limit, requests, seconds] = [/Address: (\d+)/, /seq (\d+)/, /sleep (\d+)/].map((pattern) =>
    Number(pattern.exec(command)?.[1]),
  ) as [number, number, number];
  // curl itself takes up to a second.
  expect(60 / (seconds + 1)).toBeGreaterThanOrEqual(2 * limit);
  // The firewall blocks half a minute after a full minute at the latest.
  expect(requests * seconds).toBeGreaterThan(90);
});
