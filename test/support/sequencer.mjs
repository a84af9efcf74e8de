import Sequencer from "@jest/test-sequencer";
import secondsByFile from "./slow-files.json" with { type: "json" };

/*
 * Starts the files that take longest first, so that no long one runs alone at the end. Jest knows durations only from an
 * earlier run of the same checkout; in a new one it would sort by file size, and the longest files are small. The seconds of
 * slow-files.json were measured on two busy cores; the order matters, not the value.
 * https://jestjs.io/docs/configuration#testsequencer-string
 */

const secondsOf = ({ path }) =>
  Object.entries(secondsByFile).find(([name]) => path.endsWith(`/test/${name}.test.ts`))?.[1] ?? 0;

export default class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((one, other) => secondsOf(other) - secondsOf(one));
  }
}
