import Sequencer from "@jest/test-sequencer";

/*
 * Starts the files that take longest first, so that no long one runs alone at the end. Jest knows durations only from an
 * earlier run of the same checkout; in a new one it would sort by file size, and the longest files are small.
 * https://jestjs.io/docs/configuration#testsequencer-string
 */

/**
 * Measured seconds on two busy cores. The order matters, not the value.
 */
const secondsByFile = {
  "packages/console/browser": 128,
  "faults/crash": 99,
  "packages/cli/svc": 87,
  "bin/smoke": 83,
  "bin/local/local": 71,
  "bench/kills": 50,
  "packages/cli/svc-tail": 50,
  "faults/write-once": 66,
  "faults/state-machine.property": 46,
  "faults/aws-faults": 45,
  "bench/isolation": 35,
  "faults/burst": 33,
  "bin/openapi.contract": 33,
  "docs/github-actions": 33,
  "bin/dlq": 28,
  "packages/client/client-packed": 22,
  "docs/runbook-commands": 22,
  "bin/starters": 20,
  "bin/replay": 20,
  "functions/attempts/slow-mark": 19,
  "faults/hostile": 18,
  "bench/cold": 19,
  "packages/cli/tail": 15,
  "docs/receivers": 15,
  "bin/commands": 14,
  "bin/local/event-sources": 13,
  "functions/deliveries/recover.bounds": 12,
  "bench/pipe": 12,
  "packages/cli/svc-mcp": 12,
};

const secondsOf = ({ path }) =>
  Object.entries(secondsByFile).find(([name]) => path.endsWith(`/test/${name}.test.ts`))?.[1] ?? 0;

export default class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((one, other) => secondsOf(other) - secondsOf(one));
  }
}
