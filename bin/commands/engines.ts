import { command, UsageError } from "../command/command.ts";
import { engine as cloudformation } from "../engines/cloudformation.ts";
import { type Engine, skipReason } from "../engines/engine.ts";
import { engine as mcp } from "../engines/mcp.ts";
import { engine as moto } from "../engines/moto.ts";
import { engine as receivers } from "../engines/receivers.ts";
import { engine as runtime } from "../engines/runtime.ts";
import { engine as schemathesis } from "../engines/schemathesis.ts";

/** One row for each engine, in alphabetical order. */
const engines: Record<string, Engine> = { cloudformation, mcp, moto, receivers, runtime, schemathesis };

const help = {
  name: "npm run engines",
  about: `Checks the service against engines that others wrote. What they have shown is in docs/unproven.md.
An engine whose programs are not installed is skipped.

Engines:
${Object.entries(engines)
  .map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}`)
  .join("\n")}`,
  words: "<engine>",
  options: {
    minutes: { value: "<number>", about: "time that schemathesis may take", fallback: "5" },
    seed: { value: "<number>", about: "seed of the requests of schemathesis", fallback: "41" },
  },
  examples: Object.keys(engines).map((name) => `npm run engines -- ${name}`),
};

export async function main(): Promise<void> {
  await command(help, async (options, words) => {
    const [name = ""] = words;
    const engine = Object.hasOwn(engines, name) ? engines[name] : undefined;
    if (engine === undefined || words.length !== 1) {
      throw new UsageError("Pass the name of one engine, which --help lists.");
    }
    const reason = skipReason(engine);
    if (reason === undefined) await engine.run(options);
    return reason;
  });
}
