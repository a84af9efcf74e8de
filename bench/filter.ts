import { parseJsonExactly } from "../functions/deployments/deployment-event.ts";
import { type EventFilter, receives } from "../functions/webhooks/event-filter.ts";
import { type Bench, figure, type Result } from "./harness.ts";

/*
 * Decides by filters about generated events, and compares each decision with that of a reference, which knows the text of each
 * field from the generation of the event, and matches with regular expressions.
 */

export const bench: Bench = {
  name: "filter",
  about: "decisions about a million generated events, compared with a reference",
  run: async () => measureFilters(1_000_000),
};

/** Also names that objects inherit. */
const FIELDS = ["environment", "branch", "region", "a.b", "constructor", "__proto__", "toString", "", "é"];
const TEXTS = [
  "production",
  "Production",
  "prod",
  "",
  "main",
  "release/1.2",
  "release/",
  "42",
  "1.50",
  "true",
  "null",
  "é*",
];
/** A value of `data` as JSON, and the text that a filter compares; undefined = it matches nothing. */
const OTHERS: [json: string, text: string | undefined][] = [
  ...["42", "1.50", "-0", "1e3", "9007199254740993", "true", "false"].map((json): [string, string] => [json, json]),
  ...["null", "[]", '["main"]', "{}", '{"rawJSON":"42"}'].map((json): [string, undefined] => [json, undefined]),
];

interface Case {
  filter: EventFilter;
  /** The `data` of the event, as JSON. */
  json: string;
  expected: boolean;
}

/** Returns a generator of cases that are the same for the same seed. */
function generator(seed: number): () => Case {
  let state = seed;
  // https://www.jstatsoft.org/article/view/v008i14: xorshift with 32 bits.
  const below = (limit: number) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
  const oneOf = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
  const randomValue = (): [string, string | undefined] => {
    const text = oneOf(TEXTS);
    return below(4) === 0 ? oneOf(OTHERS) : [JSON.stringify(text), text];
  };
  const patternOf = () => {
    const text = oneOf(TEXTS).replace("*", "");
    const pattern = below(2) === 0 ? text : `${text.slice(0, below(text.length + 1))}*`;
    return pattern || "*";
  };
  const someOf = <Item>(count: number, make: () => Item): Item[] => Array.from({ length: count }, make);
  return () => {
    const values = new Map(FIELDS.filter(() => below(8) > 0).map((field) => [field, randomValue()]));
    // Own fields, as JSON.parse makes them, also for __proto__.
    const filter: EventFilter = JSON.parse(
      `{${someOf(1 + below(1 + below(5)), () => `${JSON.stringify(oneOf(FIELDS))}:${JSON.stringify(someOf(1 + below(20), patternOf))}`)}}`,
    );
    const data = [...values].map(([field, [json]]) => `${JSON.stringify(field)}:${json}`);
    const expected = Object.entries(filter).every(([field, patterns]) => {
      const text = values.get(field)?.[1];
      return text !== undefined && patterns.some((pattern) => regExpOf(pattern).test(text));
    });
    return { filter, json: `{${data}}`, expected };
  };
}

const known = new Map<string, RegExp>();

function regExpOf(pattern: string): RegExp {
  const text = pattern.replace(/\*$/, "").replaceAll(/[.*/]/g, "\\$&");
  const found = known.get(pattern) ?? new RegExp(`^${text}${pattern.endsWith("*") ? "[^]*" : ""}$`);
  known.set(pattern, found);
  return found;
}

/** Decisions that are measured together: the clock is too coarse for one. */
const BATCH = 1_000;

/** @throws Error when a decision is not that of the reference */
export function measureFilters(events: number, seed = 1): Result {
  const next = generator(seed);
  let cpuMicros = 0;
  let received = 0;
  for (let done = 0; done < events; done += BATCH) {
    const cases = Array.from({ length: BATCH }, () => {
      const made = next();
      const event = { event: "deploy.started", data: Object(parseJsonExactly(made.json)) };
      return { ...made, event, webhook: { events: ["deploy.started"], filter: made.filter } };
    });
    const before = process.cpuUsage();
    const decisions = cases.map(({ webhook, event }) => receives(webhook, event));
    const { user, system } = process.cpuUsage(before);
    cpuMicros += user + system;
    for (const [index, { filter, json, expected }] of cases.entries()) {
      if (decisions[index] === expected) continue;
      throw new Error(`The filter ${JSON.stringify(filter)} should${expected ? "" : " not"} match ${json}.`);
    }
    received += decisions.filter(Boolean).length;
  }
  return {
    tables: [],
    targets: [{ name: "CPU µs per decision of a filter", value: cpuMicros / events, bound: 5, unit: "µs" }],
    notes: [`Seed ${seed}: ${events} events, of which the webhook receives ${figure((100 * received) / events)} %.`],
  };
}
