import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { figure, isMet, type Target } from "./harness.ts";
import { type BenchName, inLine, runBench } from "./index.ts";

const usage = `Usage: npm run promises [-- [--write] <name>...]

Measures the promises of docs/promises.md, or the named ones, in about twenty minutes on two cores.
Prints a line for each: promise <name> <value> <bound> ok|MISS
  --write   writes the figures into docs/promises.md

Exits with 1 after a wrong answer, such as an event that was lost, and never because the machine is slow.`;

/** A promise of docs/promises.md and the target of a benchmark behind it. They are measured in this order. */
export interface Promised {
  name: string;
  bench: BenchName;
  target: string;
}

const neighbours = {
  "hanging-receivers": "10 % to receivers that hang",
  "unresolved-names": "5 names that never resolve",
  "dead-webhook": "dead webhook with a backlog",
  "key-flood": "one key sends 50 requests a second",
  "nearly-slow": "20 webhooks that take 1.9 s",
  burst: "5,000 events at once",
};

export const promises: readonly Promised[] = [
  { name: "nothing-lost", bench: "kills", target: "events lost" },
  { name: "repeats-per-kill", bench: "kills", target: "requests repeated per kill" },
  { name: "request-price", bench: "cost", target: "request with a key, $ per million" },
  { name: "delivery-price", bench: "cost", target: "delivery, 1 webhook per event, $ per million" },
  { name: "delivery-price-of-ten", bench: "cost", target: "delivery, 10 webhooks per event, $ per million" },
  { name: "deleted-key", bench: "revocation", target: "accepted after: deleted" },
  { name: "leaked-key", bench: "revocation", target: "accepted after: revoked as leaked" },
  { name: "rolled-key", bench: "revocation", target: "accepted after: rolled without overlap" },
  { name: "expired-key", bench: "revocation", target: "accepted after: expired" },
  { name: "revoked-everywhere", bench: "revoked-everywhere", target: "used too long after a revocation" },
  { name: "verification-from-cache", bench: "revoked-everywhere", target: "verification from the cache, p50" },
  { name: "verification-price", bench: "cost", target: "verification without a cache, $ per million" },
  { name: "one-request-per-event", bench: "duplicates", target: "requests for a repeated event" },
  { name: "frozen-functions", bench: "freezes", target: "deliveries lost" },
  { name: "random-schedules", bench: "checks", target: "violations" },
  { name: "reports-of-others", bench: "checks", target: "wrong rows of test/field" },
  { name: "costly-response", bench: "checks", target: "costliest response" },
  { name: "recovery-of-one", bench: "recovery", target: "one that waits" },
  { name: "recovery-of-2000", bench: "recovery", target: "all that wait" },
  { name: "first-attempt-p50", bench: "pipe", target: "p50 / in memory at 50 a second" },
  { name: "first-attempt-p99", bench: "pipe", target: "p99 / in memory at 50 a second" },
  ...Object.entries(neighbours).flatMap(([name, title]): Promised[] => [
    { name: `${name}-p99`, bench: "isolation", target: `p99 / alone: ${title}` },
    { name: `${name}-onset`, bench: "isolation", target: `p99 at first / alone: ${title}` },
    { name: `${name}-throughput`, bench: "isolation", target: `throughput / alone: ${title}` },
  ]),
];

const root = join(import.meta.dirname, "..");
const documentFile = join(root, "docs/promises.md");
/** A promise that is not measured by then is reported as not measured. */
const MAX_ALL_MS = 2_100_000;

/** A measured promise; its target has the name of the promise. */
export type Figures = ReadonlyMap<string, Target>;

/** Runs the benchmarks behind the promises, one after the other. @returns the figures, and the benchmarks with a wrong answer */
async function measure(chosen: readonly Promised[]): Promise<{ figures: Figures; wrong: string[] }> {
  const figures = new Map<string, Target>();
  const wrong: string[] = [];
  const endsAt = performance.now() + MAX_ALL_MS;
  for (const bench of new Set(chosen.map(({ bench }) => bench))) {
    const leftMs = Math.max(1, endsAt - performance.now());
    const outcome = await runBench(bench, leftMs);
    if (outcome === "wrong") wrong.push(bench);
    for (const { name, target } of chosen.filter((promised) => promised.bench === bench)) {
      const measured = typeof outcome === "string" ? undefined : outcome.find((each) => each.name === target);
      if (measured) figures.set(name, { ...measured, name });
      else if (Array.isArray(outcome) && outcome[0]) throw new Error(`${bench} has no target ${target}.`);
      else console.log(`promise ${name} was not measured`);
    }
  }
  return { figures, wrong };
}

const BLOCK = /(?<=<!-- figures -->\n)[\s\S]*?(?=<!-- end of figures -->)/;

/** Returns the names of the promises that a document has figures of. */
export const documentedNames = (document: string): string[] =>
  [...(BLOCK.exec(document)?.[0] ?? "").matchAll(/^\| `([\w-]+)` /gm)].map(([, name = ""]) => name);

/**
 * Replaces the figures of a document. A promise that was not measured keeps its row.
 * @param day of the run, such as 2026-11-22
 * @throws Error when the document has no block of figures
 */
export function withFigures(document: string, figures: Figures, day: string): string {
  const [block] = BLOCK.exec(document) ?? [];
  if (block === undefined) throw new Error("docs/promises.md has no block of figures");
  const old = (name: string) => block.split("\n").find((line) => line.startsWith(`| \`${name}\` `));
  const rows = promises.map(({ name }) => {
    const target = figures.get(name);
    if (!target) return old(name) ?? `| \`${name}\` | not measured | | | |`;
    const { value, bound, unit = "", of = "", atLeast } = target;
    const shown = `${figure(value)} ${unit || of}`.trim();
    const limit = `${atLeast ? "≥" : "≤"} ${bound} ${unit}`.trim();
    return `| \`${name}\` | ${shown} | ${limit} | ${isMet(target) ? "ok" : "**MISS**"} | ${day} |`;
  });
  const table = ["", "| promise | figure | bound | | measured on |", "|---|---|---|---|---|", ...rows, "", ""].join(
    "\n",
  );
  return document.replace(BLOCK, () => table);
}

if (import.meta.main) {
  const options = {
    write: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  } as const;
  const { values, positionals: names } = parseArgs({ options, allowPositionals: true });
  const unknown = names.filter((name) => !promises.some((promised) => promised.name === name));
  if (values.help) {
    console.log(usage);
  } else if (unknown.length > 0) {
    console.error(`Unknown: ${unknown.join(", ")}. Choose from: ${promises.map(({ name }) => name).join(", ")}.`);
    process.exitCode = 1;
  } else {
    const chosen = names.length > 0 ? promises.filter(({ name }) => names.includes(name)) : promises;
    const { figures, wrong } = await measure(chosen);
    for (const target of figures.values()) console.log(inLine("promise", target));
    const day = new Date().toISOString().slice(0, 10);
    if (values.write) writeFileSync(documentFile, withFigures(readFileSync(documentFile, "utf8"), figures, day));
    if (wrong.length > 0) console.error(`Wrong answers, see above: ${wrong.join(", ")}`);
    process.exitCode = wrong.length > 0 ? 1 : 0;
  }
}
