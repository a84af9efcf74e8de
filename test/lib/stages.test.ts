import { endpoints } from "../../functions/endpoints.ts";
import { workers } from "../../functions/workers.ts";
import { stageNamed, stages } from "../../lib/stages.ts";

test("without a stage it is dev", () => {
  expect(stageNamed(undefined).name).toBe("dev");
});

test.each(stages)("there is the stage $name", (stage) => {
  expect(stageNamed(stage.name)).toBe(stage);
});

test.each(["nope", "", "Prod", 1])("an unknown stage is refused with the known ones: %j", (name) => {
  expect(() => stageNamed(name)).toThrow(`There is no stage ${JSON.stringify(name)}. Known stages: dev, prod.`);
});

test.each(stages)("the settings of $name are for functions that exist", ({ settings }) => {
  const files: string[] = [...endpoints, ...workers].map((row) => row.file);
  expect(files).toEqual(expect.arrayContaining(Object.keys(settings)));
});
