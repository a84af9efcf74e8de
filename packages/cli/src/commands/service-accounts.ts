import { Option } from "commander";
import type { ServiceAccountRef } from "../../../client/src/client.ts";
import { confirm, jsonText, note, print, printList, yesOption } from "../terminal/terminal.ts";
import { roleTable } from "../views/table.ts";
import { requireFullId } from "./find.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import {
  keyTable,
  type LimitOptions,
  limitOptions,
  limitsOf,
  overlapOption,
  overlapSecondsOf,
  printKey,
} from "./key-options.ts";
import type { ProjectCall, SvcCommand } from "./svc-command.ts";

const account = ["<account>", "the full id of the service account", requireFullId] as const;
const keyId = ["<id>", "the full id of the key", requireFullId] as const;
const commandsOf =
  ({ projectId, serviceAccountId }: ServiceAccountRef) =>
  (verb: string, id: string) =>
    `svc service-accounts ${verb}-key ${serviceAccountId} ${id} --project ${projectId}`;

export function addServiceAccounts(program: SvcCommand): void {
  const accounts = program
    .command("service-accounts")
    .summary("service accounts of a project: create, list, delete, and their keys")
    .description("Service accounts: callers without a person, for CI jobs. They stay when people leave the project.");

  type Creation = ProjectCall & OnceOptions & { role: "admin" | "viewer" };
  accounts
    .command("create")
    .summary("create a service account")
    .description("Creates a service account and prints its id. Requires a JWT of an admin of the project.")
    .argument("<name>", "what it is for, 1-100 characters")
    .addOption(
      new Option("--role <role>", "its role in the project").choices(["admin", "viewer"]).makeOptionMandatory(),
    )
    .option(...onceOption)
    .inProject(async ({ api, projectId, json, role, ...options }: Creation, name: string) => {
      const created = await api.createServiceAccount(projectId, { name, role }, onceOf(options));
      note(
        `Created the service account. Create a key for it: svc service-accounts create-key ${created.id} ci --project ${projectId}`,
      );
      print(json ? jsonText(created) : created.id);
    });

  accounts
    .command("list")
    .summary("list the service accounts of a project")
    .description("Lists the service accounts of a project, oldest first. Requires an admin.")
    .inProject(async ({ api, projectId, json }) => {
      printList(await api.listServiceAccounts(projectId), json, "The project has no service accounts.", roleTable);
    });

  accounts
    .command("delete")
    .summary("delete a service account with its keys, effective immediately")
    .description("Deletes a service account with all of its keys. The service rejects them from the next request on.")
    .argument(...account)
    .option(...yesOption)
    .inProject(async ({ api, projectId, yes }: ProjectCall & { yes?: boolean }, serviceAccountId: string) => {
      await confirm(`Delete the service account ${serviceAccountId} and its keys`, yes);
      await api.deleteServiceAccount({ projectId, serviceAccountId });
      note(`Deleted the service account ${serviceAccountId}.`);
    });

  type KeyCreation = ProjectCall & LimitOptions & OnceOptions;
  limitOptions(
    accounts
      .command("create-key")
      .summary("create a key for a service account; it is shown only once")
      .description("Creates an API key for a service account and prints it, only once. Requires a JWT of an admin.")
      .argument(...account)
      .argument("<name>", "what the key is for, 1-100 characters")
      .option(...onceOption),
  ).inProject(async ({ api, projectId, ...options }: KeyCreation, serviceAccountId: string, name: string) => {
    const ref = { projectId, serviceAccountId };
    const body = { name, ...limitsOf(options) };
    const request = () => api.createServiceAccountApiKey(ref, body, onceOf(options));
    await printKey(options, request, commandsOf(ref));
  });

  accounts
    .command("list-keys")
    .summary("list the keys of a service account")
    .description("Lists the API keys of a service account, oldest first, with their limits and last use.")
    .argument(...account)
    .inProject(async ({ api, projectId, json }, serviceAccountId: string) => {
      const list = await api.listServiceAccountApiKeys({ projectId, serviceAccountId });
      printList(list, json, "The service account has no API keys.", keyTable);
    });

  accounts
    .command("rename-key")
    .summary("rename a key of a service account")
    .description("Changes the name of an API key of a service account.")
    .argument(...account)
    .argument(...keyId)
    .argument("<name>", "the new name, 1-100 characters")
    .inProject(async ({ api, projectId, json }, serviceAccountId: string, id: string, name: string) => {
      const renamed = await api.updateServiceAccountApiKey({ projectId, serviceAccountId }, id, { name });
      note(`Renamed the key ${renamed.id}.`);
      if (json) print(jsonText(renamed));
    });

  accounts
    .command("roll-key")
    .summary("replace a key of a service account; the new one is shown only once")
    .description(
      "Replaces the secret of an API key of a service account and prints the new one, only once. Id, name and limits stay. Requires a JWT of an admin.",
    )
    .argument(...account)
    .argument(...keyId)
    .option(...overlapOption)
    .inProject(
      async (
        { api, projectId, ...options }: ProjectCall & { overlap: string },
        serviceAccountId: string,
        id: string,
      ) => {
        const ref = { projectId, serviceAccountId };
        const body = { overlap_seconds: overlapSecondsOf(options.overlap) };
        await printKey(options, () => api.rollServiceAccountApiKey(ref, id, body), commandsOf(ref));
      },
    );

  accounts
    .command("delete-key")
    .summary("delete a key of a service account, effective immediately")
    .description("Deletes an API key of a service account. The service rejects it from the next request on.")
    .argument(...account)
    .argument(...keyId)
    .option(...yesOption)
    .inProject(
      async ({ api, projectId, yes }: ProjectCall & { yes?: boolean }, serviceAccountId: string, id: string) => {
        await confirm(`Delete the key ${id}`, yes);
        await api.deleteServiceAccountApiKey({ projectId, serviceAccountId }, id);
        note(`Deleted the key ${id}.`);
      },
    );
}
