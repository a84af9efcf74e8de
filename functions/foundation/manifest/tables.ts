/**
 * A DynamoDB table. The stack deploys these rows, local runs and tests create them, and grants refer to them by their
 * key in `tables`. Data only.
 */
export interface TableRow {
  /** Environment variable that holds the deployed table's name. */
  env: string;
  /** Name of the table. A deployment adds the stage as a prefix. */
  name: string;
  partitionKey: string;
  sortKey?: string;
  indexes?: { name: string; partitionKey: { name: string; type: "S" | "N" }; sortKey: string }[];
  /**
   * The items are secrets: a function with only write permissions must not receive old values (`ReturnValues`), and in a
   * stage that keeps data other principals of the account are denied them (lib/secret-tables.ts).
   */
  isSecret?: true;
  /** Attribute that holds the expiry time in epoch seconds. DynamoDB deletes the item after it. */
  ttl?: string;
}

export const tables = {
  /**
   * API keys by the hash of the key. The authorizer reads one item per request. Only secrets that a roll has replaced have
   * an expiry time.
   */
  apiKeys: { env: "API_KEYS_TABLE", name: "api-keys", partitionKey: "key_hash", ttl: "delete_after" },
  /** The API keys of each user in order of creation, and the counter that enforces the limit. */
  userApiKeys: { env: "USER_API_KEYS_TABLE", name: "user-api-keys", partitionKey: "user_id", sortKey: "id" },
  /** Members of projects: one item per user and project, with the role. Written by the platform, and for service accounts by the API. */
  projects: { env: "PROJECTS_TABLE", name: "projects", partitionKey: "user_id", sortKey: "project_id" },
  /**
   * When the platform last changed each member, in the order of the projects; also of those that it has removed, which have
   * an expiry time. Spread over 16 shards.
   */
  memberVersions: {
    env: "MEMBER_VERSIONS_TABLE",
    name: "member-versions",
    partitionKey: "shard",
    sortKey: "member",
    ttl: "delete_after",
  },
  /** The webhooks of each project in order of creation, and the counter that enforces the limit. */
  webhooks: { env: "WEBHOOKS_TABLE", name: "webhooks", partitionKey: "project_id", sortKey: "id" },
  /** Signing secrets. A table of its own, so that IAM can limit read access to the function that signs. */
  webhookSecrets: {
    env: "WEBHOOK_SECRETS_TABLE",
    name: "webhook-secrets",
    partitionKey: "webhook_id",
    isSecret: true,
  },
  /** Deployment events, one item for each, in order of time. The item shows that an event was handed to the senders. */
  events: { env: "EVENTS_TABLE", name: "events", partitionKey: "project_id", sortKey: "id", ttl: "expires_at" },
  /** Deliveries with their payload, attempts and responses. */
  deliveries: {
    env: "DELIVERIES_TABLE",
    name: "deliveries",
    partitionKey: "webhook_id",
    sortKey: "id",
    ttl: "expires_at",
  },
  /**
   * The deliveries that wait: for each webhook their places in order, and one wake-up. The sparse index `due` contains the
   * wake-ups only. No expiry time, so that none is lost.
   */
  backlog: {
    env: "BACKLOG_TABLE",
    name: "backlog",
    partitionKey: "line",
    sortKey: "entry",
    indexes: [{ name: "due", partitionKey: { name: "due_shard", type: "N" }, sortKey: "due" }],
  },
  /**
   * What each project has used of its budget of requests: one item per project and minute. The key `toggle:<project>` has how
   * often it has changed its webhooks, `credentials:<user>` what a user has created and rolled, and `address:<IP address>`
   * what an address has used of its limit for reporting leaked keys.
   */
  requestBudgets: {
    env: "REQUEST_BUDGETS_TABLE",
    name: "request-budgets",
    partitionKey: "project_id",
    sortKey: "window",
    ttl: "expires_at",
  },
  /** The service accounts of each project in order of creation, and the counter that enforces the limit. */
  serviceAccounts: {
    env: "SERVICE_ACCOUNTS_TABLE",
    name: "service-accounts",
    partitionKey: "project_id",
    sortKey: "id",
  },
  /** Who did what to keys, webhooks, secrets and members, kept for 400 days. Per user and per project. */
  auditEvents: {
    env: "AUDIT_EVENTS_TABLE",
    name: "audit-events",
    partitionKey: "scope",
    sortKey: "id",
    ttl: "expires_at",
  },
  /** What makes cached results of `credentials-verify` out of date, kept for 24 hours. A day has four partitions. */
  revocations: { env: "REVOCATIONS_TABLE", name: "revocations", partitionKey: "day", sortKey: "id", ttl: "expires_at" },
  /** What requests with an `Idempotency-Key` have created in the last 24 hours. */
  idempotencyKeys: {
    env: "IDEMPOTENCY_KEYS_TABLE",
    name: "idempotency-keys",
    partitionKey: "user_id",
    sortKey: "key",
    ttl: "expires_at",
  },
  /**
   * Notifications that are not published yet, of each owner in order of their due time. The index `due` finds the owners: its
   * sort key has the minute and the owner, so a reader skips all rows of an owner in a minute. Written in the transaction of
   * the change, deleted when they are published or no longer true, or fail for three days. No expiry time: reminders wait for
   * months.
   */
  notifications: {
    env: "NOTIFICATIONS_TABLE",
    name: "notifications",
    partitionKey: "owner",
    sortKey: "due",
    indexes: [{ name: "due", partitionKey: { name: "due_shard", type: "N" }, sortKey: "due_owner" }],
  },
  /**
   * Workflows of CI systems that projects trust. Each one is stored three times: in the list of its project, and for the
   * authorizer in two lists of its repository, by project and by age.
   */
  trustedWorkflows: {
    env: "TRUSTED_WORKFLOWS_TABLE",
    name: "trusted-workflows",
    partitionKey: "listed_under",
    sortKey: "entry",
  },
} as const satisfies Record<string, TableRow>;

export type TableKey = keyof typeof tables;
