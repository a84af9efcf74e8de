import { type Engine, skipReason } from "../../bin/engines/engine.ts";
import { commandHere } from "../support/command-here.ts";

test("an engine without its program is skipped with one sentence that says how to install it", async () => {
  const { code, stdout, stderr } = await commandHere("engines", ["moto"], { PATH: "/nowhere" });
  const stated = "Skipped, because moto_server is not in PATH: install it with pipx install 'moto[server]'\n";
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: stated, stderr: "" });
});

test("an engine is not skipped when all its programs are in a folder of PATH", () => {
  const engine: Engine = { summary: "", programs: ["sh", "no-such-program"], install: "none", run: async () => {} };
  expect(skipReason(engine)).toBe("Skipped, because no-such-program is not in PATH: install it with none");
  expect(skipReason({ ...engine, programs: ["sh"] })).toBeUndefined();
});

test.each(["cloudformation", "mcp", "receivers", "runtime", "schemathesis"])(
  "the engine %s is skipped too",
  async (name) => {
    const { code, stdout } = await commandHere("engines", [name], { PATH: "/nowhere" });
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Skipped, because .+ is not in PATH: .+\n$/),
    });
  },
);
