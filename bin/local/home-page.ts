import type { LocalSettings } from "./settings.ts";
import { scriptCommand } from "./shell-commands.ts";
import { trySteps } from "./start-page.ts";

/**
 * The page of a local run at `/`, for a person who opens the API's address in a browser. It holds no token: any program on
 * this machine can read it.
 */
export function homePage(
  baseUrl: string,
  settings: Pick<LocalSettings, "dataDir" | "isSecretGiven">,
  allowedCidrs: string[],
): string {
  const steps = trySteps(baseUrl, settings, allowedCidrs)
    .map(({ about, commands }) => `# ${about}\n${commands.join("\n")}`)
    .join("\n\n");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API keys and deployment webhooks</title>
<link rel="icon" href="/console/icon.svg">
</head>
<body>
<h1>API keys and deployment webhooks</h1>
<p>This is a local run of the API. Programs call it at <code>${escapeHtml(baseUrl)}/v1/…</code></p>
<ul>
<li><a href="/console/">Console</a>: API keys, webhooks and deliveries in the browser. To sign in, open the link that
<code>${escapeHtml(scriptCommand("console", "", settings))}</code> prints.</li>
<li><code>docs/api.md</code> describes every request, <code>docs/webhooks.md</code> how to receive a delivery, and
<code>README.md</code> the first five minutes.</li>
</ul>
<h2>Try it</h2>
<p>Paste this into a terminal, in the project's folder, from top to bottom.</p>
<pre>${escapeHtml(steps)}</pre>
</body>
</html>
`;
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
