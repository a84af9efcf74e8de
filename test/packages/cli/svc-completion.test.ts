import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "../../support/optional-program.ts";
import { svcHere } from "../../support/svc-here.ts";

/* Completion, run in the shells themselves. */

const folder = mkdtempSync(join(tmpdir(), "completion-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function scriptOf(shell: string): Promise<string> {
  const { code, stdout, stderr } = await svcHere(["completion", shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const path = join(folder, `svc.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

describe("bash", () => {
  let script: string;
  beforeAll(async () => {
    script = await scriptOf("bash");
    writeFileSync(join(folder, "body.json"), "{}");
  });

  /** The completions that bash offers for the last word. */
  function offers(...words: string[]): string[] {
    const code = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const all = ["svc", ...words];
    const text = execFileSync("bash", ["-c", code, "bash", script, ...all], { encoding: "utf8", cwd: folder });
    return text.split("\n").filter((line) => line !== "");
  }

  const onBash = needs("bash").test;

  onBash("completes commands, subcommands and options", () => {
    expect(offers("w")).toEqual(["whoami", "webhooks", "workflows"]);
    expect(offers("webhooks", "")).toEqual(
      expect.arrayContaining(["create", "list", "show", "update", "delete", "rotate", "test", "--base-url", "--help"]),
    );
    expect(offers("deliveries", "re")).toEqual(["redeliver", "recover"]);
    expect(offers("webhooks", "update", "--e")).toEqual(["--events", "--enable"]);
    expect(offers("--json", "keys", "d")).toEqual(["delete"]);
    expect(offers("webhooks", "l")).toEqual(["list", "ls"]);
    expect(offers("webhooks", "ls", "--p")).toEqual(["--project"]);
    expect(offers("help", "we")).toEqual(["webhooks"]);
  });

  onBash("completes option values: events, statuses, shells and files", () => {
    expect(offers("webhooks", "create", "https://example.com/", "--events", "deploy.s")).toEqual([
      "deploy.started",
      "deploy.succeeded",
    ]);
    expect(offers("webhooks", "create", "https://example.com/", "--events", "deploy.failed", "webhook.")).toEqual([
      "webhook.failing",
      "webhook.disabled",
    ]);
    expect(offers("webhooks", "create", "--events", "deploy.failed", "--pro")).toEqual(["--project"]);
    expect(offers("listen", "--events", "w")).toEqual([]);
    expect(offers("deliveries", "list", "--status", "f")).toEqual(["failed"]);
    expect(offers("completion", "z")).toEqual(["zsh"]);
    expect(offers("verify", "--body", "bo")).toEqual(["body.json"]);
    expect(offers("webhooks", "list", "--project", "")).toEqual([]);
  });

  onBash("registers the function for svc", () => {
    const registered = execFileSync("bash", ["-c", 'source "$1"; complete -p svc', "bash", script], {
      encoding: "utf8",
    });
    expect(registered).toBe("complete -F _svc svc\n");
  });
});

needs("zsh").test("zsh registers a completion for svc", async () => {
  const script = await scriptOf("zsh");
  const text = execFileSync("zsh", ["-f", "-c", 'source "$1"; print -r -- $_comps[svc]', "zsh", script], {
    encoding: "utf8",
  });
  expect(text.trim()).not.toBe("");
});

test("the script of every shell contains every command", async () => {
  for (const shell of ["bash", "zsh"]) {
    const { stdout } = await svcHere(["completion", shell]);
    for (const name of [
      "login",
      "keys",
      "webhooks",
      "workflows",
      "rotate",
      "deliveries",
      "recover",
      "tail",
      "listen",
      "trigger",
      "verify",
      "mcp",
    ]) {
      expect(stdout).toMatch(new RegExp(`\\b${name}\\b`));
    }
  }
});
