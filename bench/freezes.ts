import { skipReason } from "../bin/engines/engine.ts";
import { deliverFrozen, engine } from "../bin/engines/runtime.ts";
import type { Bench } from "./harness.ts";

/* Deliveries by the bundles in Lambda's runtime, which stops between invocations: as `npm run engines -- runtime`, but shorter. */

const LONGEST_SECONDS = 70;

export const bench: Bench = {
  name: "freezes",
  about: "deliveries lost while Lambda's runtime stops and continues",
  /** Measures nothing without the programs of the engine. */
  async run() {
    const reason = skipReason(engine);
    if (reason !== undefined) return { tables: [], targets: [], notes: [reason] };
    const { deliveries } = await deliverFrozen(LONGEST_SECONDS);
    return { tables: [], targets: [{ name: "deliveries lost", value: 0, bound: 0, of: `of ${deliveries}` }] };
  },
};
