import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Metafile } from "esbuild";
import { budgetOf, heaviest } from "../bin/build/budgets.ts";
import { bundleFunctions } from "../bin/build/bundle-functions.ts";
import { endpoints } from "../functions/manifest/endpoints.ts";
import { workers } from "../functions/manifest/workers.ts";
import { bundleFolder } from "../lib/names.ts";
import { type Bench, KB } from "./harness.ts";

/* Reports the size of the bundles that Lambda loads at a cold start. A bundle over the budget of the build fails it, here too. */

interface BundleSize {
  file: string;
  kb: number;
  zippedKb: number;
  budgetKb: number;
  largestParts: string;
}

/** @param outdir the output folder of `build` */
function measureBundle({ outputs }: Metafile, outdir: string, file: string): BundleSize {
  const [, output] = Object.entries(outputs).find(([path]) => path.endsWith(`/${bundleFolder(file)}/index.js`)) ?? [];
  if (!output) throw new Error(`The build has no bundle of ${file}`);
  const zipped = gzipSync(readFileSync(join(outdir, bundleFolder(file), "index.js")));
  return {
    file,
    kb: output.bytes / KB,
    zippedKb: zipped.length / KB,
    budgetKb: budgetOf(file),
    largestParts: heaviest(output),
  };
}

export const bench: Bench = {
  name: "size",
  about: "minified size of every bundle, and its largest packages",
  async run() {
    const outdir = mkdtempSync(join(tmpdir(), "bench-size-"));
    try {
      const metafile = await bundleFunctions({ outdir });
      const sizes = [...endpoints, ...workers]
        .map(({ file }) => measureBundle(metafile, outdir, file))
        .sort((one, other) => other.kb - one.kb);
      const largestOf = (isIncluded: (file: string) => boolean) => {
        const largest = sizes.find(({ file }) => isIncluded(file));
        if (!largest) throw new Error("The build has no such bundle");
        return { value: largest.kb, bound: largest.budgetKb, unit: "KB" };
      };
      const isEndpoint = (file: string) => endpoints.some((row) => row.file === file);
      return {
        tables: [
          {
            title: "KB of 1,024 bytes",
            columns: ["function", "minified", "gzipped", "budget", "largest packages"],
            rows: sizes.map(({ file, kb, zippedKb, budgetKb, largestParts }) => [
              file,
              kb,
              zippedKb,
              budgetKb,
              largestParts,
            ]),
          },
        ],
        targets: [
          { name: "authorizer", ...largestOf((file) => file === "auth/authorizer") },
          { name: "largest endpoint", ...largestOf(isEndpoint) },
          { name: "sender", ...largestOf((file) => file === "attempts/send") },
        ],
        data: sizes,
      };
    } finally {
      rmSync(outdir, { recursive: true, force: true });
    }
  },
};
