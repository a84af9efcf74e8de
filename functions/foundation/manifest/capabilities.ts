import type { Grants } from "./grants-schema.ts";

/** What several endpoints may do. */
export const can = {
  createKey: { tables: { apiKeys: ["PutItem"], userApiKeys: ["PutItem", "UpdateItem"], notifications: ["PutItem"] } },
  listKeys: { tables: { apiKeys: ["BatchGetItem"], userApiKeys: ["Query"] } },
  renameKey: { tables: { apiKeys: ["GetItem", "UpdateItem"], userApiKeys: ["GetItem"] } },
  rollKey: {
    tables: {
      apiKeys: ["GetItem", "PutItem", "UpdateItem", "DeleteItem"],
      userApiKeys: ["GetItem", "UpdateItem"],
      revocations: ["PutItem"],
    },
  },
  deleteKey: {
    tables: {
      apiKeys: ["GetItem", "DeleteItem"],
      userApiKeys: ["GetItem", "DeleteItem", "UpdateItem"],
      notifications: ["PutItem", "DeleteItem", "Query"],
      revocations: ["PutItem"],
    },
  },
  /** Of one webhook, against the project's budget. */
  sendDeliveries: {
    tables: {
      webhooks: ["GetItem"],
      deliveries: ["PutItem"],
      backlog: ["PutItem", "UpdateItem", "DeleteItem"],
      requestBudgets: ["UpdateItem"],
    },
    sendsTo: ["slowDeliveries"],
  },
  /** To the budget of reads of the project, or of the user. */
  chargeReads: { tables: { requestBudgets: ["GetItem", "UpdateItem"] } },
} as const satisfies Record<string, Grants>;
