import { type ReplayResult, handler as replay } from "../../functions/deliveries/intake/replay.ts";
import { replayInput } from "../../functions/deliveries/log/delivery-presenter.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { checkInput } from "../command/check-input.ts";
import { command, UsageError } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { settingRows } from "../command/settings.ts";
import { StartError } from "../command/start-error.ts";
import { unreachable } from "../command/unreachable.ts";

const help = {
  name: "npm run --silent replay",
  about: `Creates the deliveries of a project's events that do not exist, as after a queue was purged by mistake.
Until its first attempt, a delivery is only in a queue. A delivery that was attempted or stored stays as it is, so the
command can be repeated. Webhooks get no events from before their creation.`,
  options: {
    project: { value: "<uuid>", about: "project whose events are read", isRequired: true },
    since: {
      value: "<time>",
      about: "read the events received since then, for example 2026-01-31T09:30:00Z",
      isRequired: true,
    },
    stage: {
      value: "<stage on AWS>",
      about: "print the command for a deployed stage instead",
      shownDefault: "the local run",
    },
  },
  settings: settingRows("DATA_DIR", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"),
  examples: [
    "npm run --silent replay -- --project 01930000-0000-7000-8000-00000000d301 --since 2026-01-31T09:30:00Z",
    "npm run --silent replay -- --project 01930000-0000-7000-8000-00000000d301 --since 2026-01-31T09:30:00Z --stage prod",
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ project, since, stage }) => {
    const input = { project_id: project, since };
    checkInput(replayInput(new Date()), input, optionByField);
    if (stage !== undefined) return commandForStage(stage, since, project);
    await connect();
    logSink.write = showProblem;
    return replayAll(input);
  });
}

/** Shows the lines of the log that name an event which could not be read, and other failures. */
const showProblem: typeof logSink.write = (level, { message, event_id = "", error }) => {
  const reason = Object(error).message;
  if (level === "info") return;
  console.error(event_id === "" ? `${message}: ${reason}` : `event ${event_id} not replayed: ${reason}`);
};

const RUN_MS = 55_000;

/** Calls the function until all events were looked at. */
async function replayAll(input: { project_id: string; since: string }): Promise<string> {
  const total = { events: 0, deliveries: 0, unreadable: 0 };
  let cursor: string | null = null;
  do {
    const endsAt = Date.now() + RUN_MS;
    const context = { getRemainingTimeInMillis: () => endsAt - Date.now() };
    const next = { ...input, ...(cursor !== null && { cursor }) };
    const result: ReplayResult = await replay(next, context).catch((error: Error) => {
      const reason = unreachable(error) ?? `${error.message}.`;
      const advice = "Repeat the command: it creates only what is missing.";
      throw new StartError(`${summary(total)}, then stopped: ${reason} ${advice}`);
    });
    total.events += result.events;
    total.deliveries += result.deliveries;
    total.unreadable += result.unreadable;
    cursor = result.next_cursor;
  } while (cursor !== null);
  if (total.unreadable === 0) return `${summary(total)}\ncomplete`;
  throw new StartError(`${summary(total)}\n${total.unreadable} could not be read: see above`);
}

const summary = ({ events, deliveries }: { events: number; deliveries: number }): string =>
  `${counted(events, "event")} looked at, ${counted(deliveries, "missing delivery", "missing deliveries")} created`;

const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** @throws UsageError when the stage cannot be part of a shell command */
function commandForStage(stage: string, since: string, project: string): string {
  if (!/^[\w-]+$/.test(stage)) throw new UsageError("--stage must be the name of a stage, such as prod.");
  // The time may be in another time zone or have a fraction of any length.
  const utc = new Date(since).toISOString();
  return `On AWS the function deliveries-replay does this, under IAM. With the AWS CLI, in this folder:
  STAGE=${stage} docs/runbook/replay-events.sh ${utc} ${project}`;
}

const optionByField: Record<string, string> = { project_id: "--project", since: "--since" };
