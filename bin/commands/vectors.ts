import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { vectorsText } from "../vectors/vectors.ts";

const help = `Usage: npm run --silent vectors

Writes docs/vectors.json, the test vectors for receivers.

Options:
  -h, --help  show help

Exit codes: 0 written, 2 usage error.`;

export function main(args = process.argv.slice(2)): void {
  if (args.some((arg) => arg === "--help" || arg === "-h")) {
    console.log(help);
    return;
  }
  if (args.length > 0) {
    console.error(`Unexpected argument ${args[0]}.\nUsage: npm run --silent vectors`);
    process.exitCode = 2;
    return;
  }
  const text = vectorsText();
  writeFileSync(join(import.meta.dirname, "../../docs/vectors.json"), text);
  console.log(`docs/vectors.json ${(Buffer.byteLength(text) / 1024).toFixed(0)} KB`);
}
