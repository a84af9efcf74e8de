import { existsSync } from "node:fs";
import { join } from "node:path";
import secondsByFile from "./slow-files.json" with { type: "json" };

test("slow-files.json names only test files that exist", () => {
  const pathOf = (name: string) => join(import.meta.dirname, "..", `${name}.test.ts`);
  expect(Object.keys(secondsByFile).filter((name) => !existsSync(pathOf(name)))).toEqual([]);
});
