import type { Client, ClientOptions } from "../../../client/src/client.ts";
import type { Globals } from "../terminal/globals.ts";
import { connect } from "./api.ts";
import { findProject } from "./find.ts";
import { openSession } from "./session.ts";

/* What the commands share that act in a project. */

export interface InProject extends Globals {
  project?: string;
}

export const projectOption = [
  "--project <id or name>",
  "default: SVC_PROJECT, that of svc projects use, that of your key, or your only project",
] as const;

export type ProjectClientOptions = Pick<ClientOptions, "signal" | "maxRetries" | "maxWaitSeconds">;

/**
 * Connects with the credential of the user, and finds the project of a command.
 * @param fallback the project if the command line names none; default: the user's choice
 */
export async function openProject(
  options: InProject,
  clientOptions: ProjectClientOptions = {},
  fallback?: string,
): Promise<{ api: Client; projectId: string }> {
  const session = openSession(options);
  const api = await connect(options, session, clientOptions);
  return { api, projectId: await findProject(api, options.project ?? fallback ?? session.project) };
}
