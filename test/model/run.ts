import { mistakes, QUICK } from "./mistakes.ts";
import { loadProduct } from "./product.ts";
import { randomRun } from "./schedule.ts";
import { prepareEnvironment, Violation } from "./world.ts";

/*
 * The program of the model.
 *
 *   node test/model/run.ts [runs] [first seed]       random schedules
 *   node test/model/run.ts mistakes [name]           planted mistakes, or one: the first seed that finds each
 *   node test/model/run.ts replay <seed> [mistake]   one schedule, call by call
 *   node test/model/run.ts check [runs]              random schedules, then the mistakes that are found in seconds
 */

prepareEnvironment();
const [mode = "2000", one, two] = process.argv.slice(2);

/** @returns why a schedule fails; undefined when all holds */
async function violationOf(
  product: Awaited<ReturnType<typeof loadProduct>>,
  seed: number,
): Promise<string | undefined> {
  try {
    const { steps, sent, faults } = await randomRun(product, seed);
    sum.steps += steps;
    sum.requests += sent.length;
    sum.faults += faults;
    return undefined;
  } catch (error) {
    if (error instanceof Violation) return `seed ${seed}: ${error.message}`;
    throw error;
  }
}
const sum = { steps: 0, requests: 0, faults: 0 };

async function random(runs: number, first: number): Promise<boolean> {
  const product = await loadProduct();
  const found: string[] = [];
  for (let seed = first; seed < first + runs; seed++) {
    const violation = await violationOf(product, seed);
    if (violation) found.push(violation);
  }
  console.log(`${runs} schedules, ${found.length} violations`, JSON.stringify(sum), ...found);
  return found.length === 0;
}

/** @param longest leaves out the mistakes that need more schedules */
async function find(longest: number, only?: string): Promise<boolean> {
  const sound = await loadProduct();
  let isAllFound = true;
  for (const mistake of mistakes.filter(({ within, name }) => within <= longest && name.includes(only ?? ""))) {
    const product = await loadProduct(mistake);
    let found: string | undefined;
    for (const seed of [mistake.seed ?? 1, ...Array.from({ length: mistake.within }, (_, index) => index + 1)]) {
      found = await violationOf(product, seed);
      // Only what the product does without the mistake shows that the mistake was found.
      if (found && (await violationOf(sound, seed))) found = undefined;
      if (found) break;
    }
    console.log(found ? "found    " : "NOT FOUND", mistake.name.padEnd(72), found ?? "");
    isAllFound &&= found !== undefined;
  }
  return isAllFound;
}

async function replay(seed: number, name: string | undefined): Promise<boolean> {
  await randomRun(await loadProduct(mistakes.find((mistake) => mistake.name === name)), seed, true);
  return true;
}

const modes: Record<string, () => Promise<boolean>> = {
  mistakes: () => find(Number.POSITIVE_INFINITY, one),
  check: async () => (await random(Number(one ?? 300), 1)) && (await find(QUICK)),
  replay: () => replay(Number(one), two),
};
const isRight = await (modes[mode] ?? (() => random(Number(mode), Number(one ?? 1))))();
process.exit(isRight ? 0 : 1);
