import type { Command } from "commander";
import { webhookEventNames } from "../../../client/src/values.ts";
import { exitCodes, usageError } from "../terminal/exit-codes.ts";
import { readStdin } from "../terminal/terminal.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { readText } from "./webhook-secrets.ts";

const help = `
The file is YAML or JSON:

  project: shop                        # id or name; optional; --project overrides it; a workflow's token needs the id
  webhooks:
    - url: https://example.com/hook
      name: Chat                       # optional; without it, the name is left as it is; null removes it
      events: [deploy.succeeded, deploy.failed]
      filter:                          # optional; without it, the filter is left as it is; null removes it
        environment: [production]
        branch: [main, release/*]
    - url: https://example.com/paused
      events: [deploy.failed]
      enabled: false                   # optional; without it, the state is left as it is
    - url: https://api.github.com/repos/acme/shop/dispatches
      events: [deploy.*]
      format: github-dispatch          # optional, as are delivery (every, latest) and settle_seconds
      headers:                         # optional; null removes all; a value is in a variable or a file, never here
        Authorization: {env: GITHUB_DISPATCH_AUTHORIZATION}   # or {file: path}
      delivery: latest

A webhook of the file is the webhook of the project that has its URL. So a changed URL is another webhook, with another
secret; to keep the secret, use svc webhooks update --url first. A webhook that the file does not have is kept, and deleted
with its delivery log only with --prune. A repetition changes nothing. If --prune
deletes webhooks, it asks first, and needs --yes in a job.

A new webhook without a format gets that of the product behind its URL. Values of headers cannot be read back, so they are
sent when the webhook is created, when the names change, and with --headers. A dry run reads none.

The plan goes to stderr, and with --dry-run to stdout. stdout has one line for each created webhook: its id, its signing
secret and its URL. The secret is shown only once: redirect stdout where a log would keep it. If the response to a
creation is lost, a repetition finds the webhook, and svc webhooks rotate gets a secret. --json prints one record per line.

In CI: docs/github-actions/apply-webhooks.yml of the service's repository has the plan as a comment on a pull request.

Examples:
  $ svc apply -f webhooks.yml --dry-run --exit-code   # a check in CI: does the project differ from the file?
  $ svc apply -f webhooks.yml > secrets.txt
  $ svc apply -f webhooks.yml --project staging --prune`;

interface Options extends InProject {
  file: string;
  dryRun?: boolean;
  exitCode?: boolean;
  maskUrls?: boolean;
  prune?: boolean;
  headers?: boolean;
  requireCertified?: boolean;
  yes?: boolean;
}

export function addApply(program: Command): void {
  program
    .command("apply")
    .summary("change the webhooks of a project to those that a file declares")
    .description(
      "Creates and updates the webhooks of a project as a file declares them, for files kept in a repository.",
    )
    .requiredOption("-f, --file <path>", "the file with the webhooks; -: stdin")
    .option("--dry-run", "show what would change, and change nothing")
    .option("--exit-code", "with --dry-run: exit code 2 if something would change")
    .option("--mask-urls", "show only the hosts of URLs that the file does not have, for a log that others read")
    .option("--prune", "delete the webhooks that the file does not have")
    .option("--headers", "send the values of all headers again, after one was rotated")
    .option(
      "--require-certified",
      "change nothing unless all receivers of enabled webhooks have passed svc webhooks certify",
    )
    .option("-y, --yes", "do not ask for confirmation")
    .option(projectOption[0], `default: that of the file, or ${projectOption[1].replace("default: ", "")}`)
    .addHelpText("after", help)
    .action(async (_options, command: Command) => apply(command.optsWithGlobals()));
}

async function apply(options: Options): Promise<void> {
  if (options.exitCode && !options.dryRun) throw usageError("--exit-code needs --dry-run.");
  // Imported here because the YAML parser and zod would slow down the other commands.
  const [{ parseWebhooksFile }, { isChange, planChanges, requireCertified, withMaskedUrls }, { applyPlan, showPlan }] =
    await Promise.all([
      import("../apply/webhooks-file.ts"),
      import("../apply/plan.ts"),
      import("../apply/apply-plan.ts"),
    ]);
  const text = options.file === "-" ? (await readStdin()).toString("utf8") : readText(options.file);
  const { project, webhooks } = parseWebhooksFile(text);
  const { api, projectId } = await openProject(options, {}, project);
  // A file declares the webhooks of the project, not the subscriptions of assistants.
  const existing = (await api.listWebhooks(projectId)).filter(({ subscription }) => !subscription);
  const changes = planChanges(webhooks, existing, {
    prune: options.prune === true,
    headers: options.headers === true,
  });
  const plan = options.maskUrls ? withMaskedUrls(changes) : changes;
  if (options.dryRun) {
    const known = new Set<string>([...webhookEventNames, ...existing.flatMap(({ events }) => events)]);
    const declared = new Set(webhooks.flatMap(({ events }) => events));
    const unknown = [...declared].filter((name) => !name.endsWith("*") && !known.has(name));
    showPlan(plan, unknown, options);
    if (options.requireCertified) requireCertified(plan, projectId);
    if (options.exitCode && plan.some(isChange)) process.exitCode = exitCodes.wouldChange;
    return;
  }
  if (options.requireCertified) requireCertified(plan, projectId);
  await applyPlan(api, projectId, plan, options);
}
