import { render } from "preact";
import { sessionOf, storeSession, takeTokenFromAddress } from "./data/session.ts";
import { App } from "./screens/app.tsx";

/** Settings from the server that serves the page. */
interface Config {
  /** The address of the API; empty if it has the origin of the page. */
  apiUrl: string;
  /** A local run: the page can send deployment events, and the start page may sign the user in. */
  isLocal: boolean;
  /** In a local run: the command that prints a link which signs in. */
  signInCommand?: string;
}

async function start(): Promise<void> {
  const token = takeTokenFromAddress();
  const config: Config = await (await fetch("config.json", { cache: "no-store" })).json();
  if (token !== undefined) {
    // Only in a local run: elsewhere a link could sign a user in to the account of an attacker.
    if (config.isLocal) storeSession(sessionOf(token));
    // The browser's performance entries contain the address that was loaded, and so the token, until the next load.
    return location.reload();
  }
  const root = document.getElementById("app");
  if (root) {
    const { apiUrl, isLocal, signInCommand } = config;
    render(<App apiUrl={apiUrl || location.origin} canSendEvents={isLocal} signInCommand={signInCommand} />, root);
  }
}

// If the console is already open in the tab, a link of the start page changes only the part behind `#`.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

await start();
