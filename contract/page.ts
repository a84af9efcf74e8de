import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "..");

/** Redoc keeps its settings in a cookie, which would be sent to the console and the API of the same origin. */
const WITHOUT_COOKIES = `Object.defineProperty(document, "cookie", { get: () => "", set: () => {} });`;

/**
 * Renders docs/openapi.json as one HTML page with Redocly. The page needs no other file and no network, and neither does
 * its rendering, which takes a second.
 * @throws Error with Redocly's output when it fails
 */
export async function apiPage(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "api-page-"));
  try {
    const file = join(folder, "docs.html");
    const cli = join(root, "node_modules/@redocly/cli/bin/cli.js");
    const options = ["--inlineBundle", "--openapi.disableTelemetry", "--output", file];
    // In its own folder, so that it finds no configuration.
    await promisify(execFile)(process.execPath, [cli, "build-docs", join(root, "docs/openapi.json"), ...options], {
      cwd: folder,
      env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
    });
    const html = await readFile(file, "utf8");
    const page = html.replace("<head>", () => `<head><script>${WITHOUT_COOKIES}</script>`);
    return page.replace(
      "<head>",
      () => `<head><meta http-equiv="Content-Security-Policy" content="${policyOf(page)}">`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Allows exactly the scripts of the page, because it shares its origin with the console, which holds a credential. It
 * connects nowhere. Redoc creates its styles at run time, and its search is a worker.
 */
function policyOf(html: string): string {
  const scripts = [...html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(
    ([, script = ""]) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`,
  );
  return [
    "default-src 'none'",
    `script-src ${scripts.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "font-src data:",
    "worker-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}
