import { render } from "preact";
import { App } from "./app.tsx";
import { keepSession, sessionOf, takeTokenFromAddress } from "./session.ts";

/** What the server of the page knows about its surroundings. */
interface Config {
  /** Where the API is; empty when it is where the page is. */
  apiUrl: string;
  /** A local run: deployment events can be sent from the page, and the start page may sign somebody in. */
  isLocal: boolean;
}

const token = takeTokenFromAddress();
const config: Config = await (await fetch("config.json", { cache: "no-store" })).json();
// Elsewhere a link would sign people in as somebody else, who then reads what they enter.
if (token !== undefined && config.isLocal) keepSession(sessionOf(token));

// In a tab that has the console open already, a link of the start page changes what is behind `#` and loads nothing.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

const root = document.getElementById("app");
if (root) render(<App apiUrl={config.apiUrl} sendsEvents={config.isLocal} />, root);
