/*
 * The formats of products, by their URLs. The command line and the console import this file to propose what the service
 * accepts.
 */

/** What people call a format. */
export const formatLabels = {
  standard: "Standard",
  slack: "Slack",
  discord: "Discord",
  teams: "Microsoft Teams",
  "google-chat": "Google Chat",
  "github-dispatch": "GitHub (repository_dispatch)",
  cloudevents: "CloudEvents 1.0",
};

export type ProductFormat = "slack" | "discord" | "teams" | "google-chat" | "github-dispatch";

const URLS: Record<ProductFormat, RegExp> = {
  // Not the triggers of workflows (`/triggers/`, `/workflows/`), which take other bodies.
  slack: /^https:\/\/hooks\.slack(-gov)?\.com\/services\//i,
  // Not those that take bodies of other products (`…/slack`, `…/github`).
  discord: /^https:\/\/((ptb|canary)\.)?discord(app)?\.com\/api\/(v\d+\/)?webhooks\/\d+\/[\w-]+\/?(\?|$)/i,
  teams:
    /^https:\/\/[\w.-]+\.(webhook\.office\.com|logic\.azure\.(com|us)|environment\.api\.powerplatform\.com)(:443)?\//i,
  "google-chat": /^https:\/\/chat\.googleapis\.com\/v1\/spaces\//i,
  "github-dispatch": /^https:\/\/api\.github\.com\/repos\/[^/]+\/[^/]+\/dispatches\/?(\?|$)/i,
};

/** Returns the format that a URL gives away; undefined = none. */
export const formatOfUrl = (url: string): ProductFormat | undefined =>
  (Object.keys(URLS) as ProductFormat[]).find((format) => URLS[format].test(url));
