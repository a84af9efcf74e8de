/**
 * The DynamoDB tables, one row each. The stack deploys them, local runs and tests create them, grants refer to them by
 * their key in this record. Data only.
 */
export interface TableRow {
  /** Environment variable that holds the deployed table's name. */
  env: string;
  /** Name of the table; a deployment puts its stage in front. */
  name: string;
  partitionKey: string;
  sortKey?: string;
  indexes?: { name: string; partitionKey: { name: string; type: "S" | "N" }; sortKey: string }[];
  /** Only who is granted a read may see its items: a write must not return what was there. */
  isSecret?: true;
  /** Attribute with the epoch second after which DynamoDB may remove an item. */
  ttl?: string;
}

export const tables = {
  /** Key hash -> owner. What the authorizer reads: one item per API key. */
  apiKeys: { env: "API_KEYS_TABLE", name: "api-keys", partitionKey: "key_hash" },
  /** A user's keys in order of creation, and the counter that holds the cap. */
  userApiKeys: { env: "USER_API_KEYS_TABLE", name: "user-api-keys", partitionKey: "user_id", sortKey: "id" },
  /** Who may see which project, and as what. Written by the platform. */
  projects: { env: "PROJECTS_TABLE", name: "projects", partitionKey: "user_id", sortKey: "project_id" },
  /** A project's webhooks in order of creation, and the counter that holds the cap. */
  webhooks: { env: "WEBHOOKS_TABLE", name: "webhooks", partitionKey: "project_id", sortKey: "id" },
  /** Signing secrets, apart from the webhooks, so that IAM can keep them from every function that does not sign. */
  webhookSecrets: {
    env: "WEBHOOK_SECRETS_TABLE",
    name: "webhook-secrets",
    partitionKey: "webhook_id",
    isSecret: true,
  },
  /** What is to be sent, what was tried, what came back. The sparse index holds the rows that still have to go out. */
  deliveries: {
    env: "DELIVERIES_TABLE",
    name: "deliveries",
    partitionKey: "webhook_id",
    sortKey: "id",
    indexes: [{ name: "due", partitionKey: { name: "due_shard", type: "N" }, sortKey: "due_at" }],
    ttl: "expires_at",
  },
} as const satisfies Record<string, TableRow>;

export type TableKey = keyof typeof tables;
