/*
 * What chats and GitHub answer when they refuse a webhook, and the hint. The responses are from the documents of the
 * products and from public reports; none was asked. A new report is a new row.
 */

const slack = "https://hooks.slack.com/services/T0/B0/x";
const discord = "https://discord.com/api/webhooks/1/x";
const teams = "https://prod-1.westeurope.logic.azure.com/workflows/1";
const connector = "https://contoso.webhook.office.com/webhookb2/1";
const google = "https://chat.googleapis.com/v1/spaces/A/messages";
const github = "https://api.github.com/repos/acme/shop/dispatches";
const coded = (code: number, message: string) => JSON.stringify({ message, code });

/** Source, URL, status, body, and the hint, or a part of it. */
// biome-ignore format: a report is one line
export const chatReplies: [source: string, url: string, status: number, body: string, hint: string][] = [
  ["jamf/Setup-Manager#104", slack, 400, "no_text", "Slack returned 400 (no_text): it found no message: set the format of the webhook to slack."],
  ["OneUptime#1138", slack, 400, "invalid_payload", "Slack returned 400 (invalid_payload): it did not find a message of its form: set the format of the webhook to slack if it is another, and see the response."],
  ["docs.slack.dev", slack, 400, "invalid_blocks", "Slack returned 400 (invalid_blocks): it did not accept the message"],
  ["docs.slack.dev", slack, 404, "channel_not_found", "create a new incoming webhook, and set its URL."],
  ["docs.slack.dev", slack, 410, "channel_is_archived", "it has archived the channel: restore it"],
  ["docs.slack.dev", slack, 404, "no_service", "it has removed the incoming webhook: create a new one"],
  ["docs.slack.dev", slack, 403, "action_prohibited", "it forbids the message: an admin of the workspace must allow it."],
  ["docs.slack.dev", slack, 403, "invalid_token", "copy the whole URL of the incoming webhook again."],
  ["docs.slack.dev", slack, 403, "no_team", "does not know the workspace"],
  ["a code to come", slack, 400, "some_new_code of U0123", "Slack returned 400: it did not accept the message"],
  ["discord.com/developers", discord, 400, coded(50006, "Cannot send an empty message"), "Discord returned 400 (50006): it found an empty message: set the format of the webhook to discord."],
  ["discord.com/developers", discord, 400, coded(50035, "Invalid Form Body"), "(50035): it did not find a message of its form"],
  ["discord.com/developers", discord, 404, coded(10015, "Unknown Webhook"), "it has deleted its webhook: create a new one there, and set its URL."],
  ["discord.com/developers", discord, 401, coded(50027, "Invalid Webhook Token"), "copy the whole URL of its webhook again."],
  ["discord.com/developers", discord, 429, '{"message":"You are being rate limited.","retry_after":1.5,"global":false}', "The receiver returned 429: it receives too many requests"],
  ["fleetdm/fleet#33031", teams, 400, '{"error":{"code":"TriggerInputSchemaMismatch"}}', "Microsoft Teams returned 400: it did not accept the message: set the format of the webhook to teams"],
  ["Power Automate", teams, 401, '{"error":{"code":"DirectApiAuthorizationRequired"}}', "let anyone trigger the workflow"],
  ["Power Automate", teams, 404, '{"error":{"code":"WorkflowNotFound"}}', "it has deleted or disabled the workflow"],
  ["MicrosoftDocs/msteams-docs", connector, 200, "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413 with ContextId x", "Microsoft Teams returned 200, and did not deliver the message (HTTP error 413)."],
  ["developers.google.com", google, 400, '{"error":{"code":400,"status":"INVALID_ARGUMENT"}}', "Google Chat returned 400 (INVALID_ARGUMENT): it did not accept the message: set the format of the webhook to google-chat if it is another, and see the response."],
  ["developers.google.com", google, 403, '{"error":{"status":"PERMISSION_DENIED"}}', "(PERMISSION_DENIED): it does not allow the message"],
  ["developers.google.com", google, 404, '{"error":{"status":"NOT_FOUND"}}', "it has deleted the space or its webhook"],
  ["docs.github.com", github, 401, '{"message":"Requires authentication"}', "GitHub (repository_dispatch) returned 401: it wants a token: add the header Authorization"],
  ["docs.github.com", github, 403, '{"message":"Resource not accessible by personal access token"}', "write access to the contents"],
  ["docs.github.com", github, 404, '{"message":"Not Found"}', "it does not show the repository"],
  ["docs.github.com", github, 422, '{"message":"Invalid request."}', "set the format of the webhook to github-dispatch if it is another, and see the response."],
  ["docs.github.com", github, 413, "", "GitHub (repository_dispatch) returned 413: it does not accept bodies of this size"],
  ["another host", "https://example.com/hook", 400, "no_text", "The receiver returned 400: it did not accept the request"],
];
