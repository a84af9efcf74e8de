import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { command, UsageError } from "../command/command.ts";
import { StartError } from "../command/start-error.ts";

const help = {
  name: "npm run --silent trace",
  about: `Reads stacks of a deployed function, such as log lines, from standard input, and prints them with files and lines of the
sources. Needs the source maps of the deployed commit, which npm run build and cdk synth write into dist/maps.`,
  options: {
    function: { value: "<id>", about: "id of its row, such as attempts-send", isRequired: true },
    maps: { value: "<folder>", about: "the source maps", fallback: "dist/maps" },
  },
  examples: [
    "npm run --silent trace -- --function attempts-send < line.json",
    `ask WorkersAttemptsSendLogs 60 'filter level = "ERROR" | fields error.stack' | npm run --silent trace -- --function attempts-send`,
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ function: id, maps }) => {
    const path = join(maps, `${id}.map`);
    if (!existsSync(path)) {
      throw new StartError(
        `${path} does not exist. Check out the deployed commit and run npm run build, or unpack source-maps.tar.gz of the release.`,
      );
    }
    return withSources(await text(process.stdin), new SourceMap(JSON.parse(readFileSync(path, "utf8"))));
  });
}

/** Returns a text with each `index.js:<line>:<column>` replaced by file, line and column of the source. */
function withSources(stacks: string, map: SourceMap): string {
  const place = /[^\s()"]*index\.js:(\d+):(\d+)/g;
  if (stacks.search(place) === -1) throw new UsageError("Standard input has no index.js:<line>:<column>.");
  // A stack in a log line is a JSON string.
  return stacks.replaceAll("\\n", "\n").replaceAll(place, (bundled, line, column) => {
    const origin = map.findEntry(Number(line) - 1, Number(column) - 1);
    if (!("originalSource" in origin)) return bundled;
    return `${origin.originalSource.replace(/^(\.\.\/)+/, "")}:${origin.originalLine + 1}:${origin.originalColumn + 1}`;
  });
}
