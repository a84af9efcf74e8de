import type { Tool } from "./tools.ts";

/* Which tools a server offers: all, or those that only read, and those for which the credential has the permissions. Pure. */

interface Limits {
  isReadOnly: boolean;
  /** The permissions of the credential; null = all that its user has, or not known. */
  permissions: readonly string[] | null;
}

interface Offer<Row> {
  tools: Row[];
  /** One line for each tool that is left out, with the reason. */
  leftOut: string[];
}

type Limited = Pick<Tool, "name" | "annotations" | "needs">;

export function offeredTools<Row extends Limited>(all: readonly Row[], limits: Limits): Offer<Row> {
  const leftOut = all.flatMap((tool) => {
    const reason = reasonAgainst(tool, limits);
    return reason === undefined ? [] : [`${tool.name}: ${reason}`];
  });
  return { tools: all.filter((tool) => reasonAgainst(tool, limits) === undefined), leftOut };
}

function reasonAgainst({ annotations, needs }: Limited, { isReadOnly, permissions }: Limits): string | undefined {
  if (isReadOnly && !annotations.readOnlyHint)
    return "it changes something, and the server was started with --read-only";
  const missing = permissions === null ? [] : needs.filter((permission) => !permissions.includes(permission));
  return missing.length === 0 ? undefined : `the credential lacks the permission ${missing.join(", ")}`;
}
