import { Command } from "commander";
import type { Client, WebhookRef } from "../../../client/src/client.ts";
import type { Globals } from "../terminal/globals.ts";
import { signedIn } from "./api.ts";
import { findWebhook } from "./find.ts";
import { openProject, type ProjectClientOptions, projectOption } from "./in-project.ts";

/** What the action of a command gets that calls the service: the options of the command line, and a client. */
export interface ApiCall extends Globals {
  api: Client;
}

export interface ProjectCall extends ApiCall {
  projectId: string;
}

export interface WebhookCall extends ProjectCall {
  webhook: WebhookRef;
}

type Run<Call, Args extends unknown[]> = (call: Call, ...args: Args) => Promise<unknown>;

/** A command of `svc`. The parsers of its options and arguments reject a wrong value before a request is made. */
export class SvcCommand extends Command {
  override createCommand(name?: string): SvcCommand {
    return new SvcCommand(name);
  }

  /** Sets the action of a command that calls the service. @param run gets the call, then the arguments of the command */
  signedIn<Call extends ApiCall, Args extends unknown[]>(run: Run<Call, Args>): this {
    return this.action(async (...args) => {
      const options = this.optsWithGlobals<Call>();
      await run({ ...options, api: await signedIn(options) }, ...(args.slice(0, -2) as Args));
    });
  }

  /** Adds `--project`, and sets the action of a command in a project. */
  inProject<Call extends ProjectCall, Args extends unknown[]>(
    run: Run<Call, Args>,
    client?: ProjectClientOptions,
  ): this {
    return this.option(...projectOption).action(async (...args) => {
      const options = this.optsWithGlobals<Call>();
      await run({ ...options, ...(await openProject(options, client)) }, ...(args.slice(0, -2) as Args));
    });
  }

  /** Adds the argument for a webhook and `--project`, and sets the action of a command for a webhook. */
  onWebhook<Call extends WebhookCall>(run: Run<Call, []>): this {
    const about = "the webhook's id or name; default: the only webhook of the project";
    return this.argument("[id]", about).inProject(async (call: Call, id?: string) => {
      const { api, projectId } = call;
      await run({ ...call, webhook: { projectId, webhookId: await findWebhook(api, projectId, id) } });
    });
  }
}
