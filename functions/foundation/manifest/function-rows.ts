import { type EndpointRow, endpoints } from "./endpoints.ts";
import type { Grants, TableAction } from "./grants-schema.ts";
import { protocols } from "./protocols.ts";
import type { TableKey } from "./tables.ts";
import { type WorkerRow, workerRows } from "./workers.ts";

/** The endpoints, each with all that its function calls. */
export const endpointRows: readonly EndpointRow[] = Object.entries(endpoints).map(([id, row]) => ({
  ...row,
  id,
  uses: merged([...impliedBy(row), ...("uses" in row ? row.uses : [])]),
}));

/** What API Gateway routes: the endpoints, and the routes of other protocols. */
export const routeRows: readonly EndpointRow[] = [
  ...endpointRows,
  ...Object.entries<Omit<EndpointRow, "id">>(protocols).map(([id, row]) => ({ ...row, id })),
];

/** All Lambda functions. */
export const functionRows: readonly (EndpointRow | WorkerRow)[] = [...routeRows, ...workerRows];

/** Returns the grants that follow from what an endpoint is. */
function impliedBy({
  method,
  access,
  repeatReturns,
  credentialsPerMinutePerUser,
}: Pick<EndpointRow, "method" | "access" | "repeatReturns" | "credentialsPerMinutePerUser">): Grants[] {
  const readsRole = access === "viewer" || access === "admin" || access === "admin_session";
  return [
    ...(readsRole ? [{ tables: { projects: ["GetItem"] } } as const] : []),
    ...(method === "GET" ? [] : [{ tables: { auditEvents: ["PutItem"] } } as const]),
    ...(repeatReturns ? [{ tables: { idempotencyKeys: ["GetItem", "PutItem"] } } as const] : []),
    ...(credentialsPerMinutePerUser ? [{ tables: { requestBudgets: ["UpdateItem"] } } as const] : []),
  ];
}

/** Adds up the actions on tables. Each of the other fields must be in one grant only: the last one would replace the others. */
function merged(grants: readonly Grants[]): Grants {
  const actions = grants.flatMap(({ tables = {} }) => Object.entries(tables) as [TableKey, TableAction[]][]);
  const tables = Object.fromEntries(
    [...Map.groupBy(actions, ([key]) => key)].map(([key, entries]) => [key, entries.flatMap(([, names]) => names)]),
  );
  return Object.assign({}, ...grants, { tables });
}

/** Returns the row of a function. @throws Error when no row has this id */
export function functionRow(id: string): EndpointRow | WorkerRow {
  const row = functionRows.find((each) => each.id === id);
  if (!row) throw new Error(`No function has the id ${id}.`);
  return row;
}
