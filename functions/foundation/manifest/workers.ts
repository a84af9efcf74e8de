import type { Grants, SettingKey } from "./grants-schema.ts";
import type { QueueKey } from "./queues.ts";

/** A Lambda function without a route. Data only. */
interface WorkerFields {
  /** Module of the handler: a path below `functions/`, without `.ts`. The row does not import it, and no name comes from it. */
  file: string;
  trigger: Trigger;
  timeoutSeconds: number;
  memoryMb: number;
  uses: Grants;
  /**
   * Its failure affects all users, so a stage may deploy new versions gradually (`deploysGradually`). Both senders run the
   * same code: if only one had an alias, moving it back to an old version would leave the bad version in the other.
   */
  deploysGradually?: true;
  settings?: readonly SettingKey[];
  /** The option of `reservedConcurrency` of a stage that applies to it; absent = nothing is reserved. */
  reserves?: "authorizer" | "verify";
}

export interface WorkerRow extends WorkerFields {
  /** Name of the function in the stack, its outputs, bundles and a local run. Others rely on those of the kind `invoke`. */
  id: string;
}

/**
 * The event that starts a function:
 * - `authorizer`: API Gateway calls it on every request to authenticate the caller.
 * - `queue`: an event source mapping with partial batch responses. `maxConcurrency` limits the number of parallel
 *   batches.
 * - `everyMinutes`: a schedule.
 * - `invoke`: other parts of the platform invoke it with IAM credentials.
 */
export type Trigger =
  | { kind: "authorizer" }
  | { kind: "queue"; queue: QueueKey; batchSize: number; maxConcurrency: number }
  | { kind: "everyMinutes"; minutes: number }
  | { kind: "invoke" };

/**
 * An attempt needs up to 45 s when DynamoDB and SQS are slow: see MIN_ATTEMPT_MS in deliveries/sending/time-left.ts. A delivery that a
 * sender cannot begin in time waits in the backlog.
 */
const SENDER_TIMEOUT_SECONDS = 60;
/** An attempt mostly waits for the receiver, and Lambda bills memory per time. Peak use is below two thirds of this. */
const SENDER_MEMORY_MB = 256;

/** The calls that both senders make. */
const sending = {
  tables: {
    // Query and both GetItem: newer states of a deployment, for webhooks that want the latest only.
    events: ["Query", "GetItem"],
    deliveries: ["BatchGetItem", "GetItem", "PutItem"],
    backlog: ["PutItem", "UpdateItem", "DeleteItem"],
    webhooks: ["BatchGetItem", "GetItem", "UpdateItem"],
    webhookSecrets: ["BatchGetItem"],
    // Whether the member and the key of an assistant's subscription still exist.
    projects: ["BatchGetItem"],
    apiKeys: ["BatchGetItem"],
    auditEvents: ["PutItem"],
    notifications: ["PutItem", "Query"],
  },
  sendsTo: ["slowDeliveries"],
  reads: ["signatureSecret"],
} as const satisfies Grants;

/** The calls that plan new deliveries and let them wait. */
const storing = {
  deliveries: ["GetItem", "PutItem"],
  backlog: ["PutItem", "UpdateItem", "DeleteItem"],
  webhooks: ["GetItem", "Query"],
} as const;

const changingMembers = {
  memberVersions: ["GetItem", "UpdateItem"],
  auditEvents: ["PutItem"],
  revocations: ["PutItem"],
} as const;

export const workers = {
  "auth-authorizer": {
    file: "identity/authentication/authorizer",
    deploysGradually: true,
    settings: ["credentials", "workflowIssuers", "importedKeys", "importedKeysPepper"],
    reserves: "authorizer",
    trigger: { kind: "authorizer" },
    timeoutSeconds: 10,
    memoryMb: 512,
    uses: {
      tables: { apiKeys: ["GetItem", "UpdateItem"], trustedWorkflows: ["Query"] },
      reads: ["jwtSecret"],
    },
  },
  "credentials-verify": {
    file: "identity/verification/verify",
    reserves: "verify",
    settings: ["credentials", "workflowIssuers", "importedKeys", "importedKeysPepper", "permissions"],
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 512,
    uses: {
      tables: { apiKeys: ["GetItem", "UpdateItem"], trustedWorkflows: ["Query"], projects: ["GetItem"] },
      reads: ["jwtSecret"],
    },
  },
  "credentials-revocations": {
    file: "identity/verification/revocations",
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 256,
    uses: { tables: { revocations: ["Query"] } },
  },
  "deliveries-fan-out": {
    file: "deliveries/intake/fan-out",
    deploysGradually: true,
    settings: ["events"],
    trigger: { kind: "queue", queue: "events", batchSize: 10, maxConcurrency: 50 },
    timeoutSeconds: 30,
    memoryMb: 512,
    uses: {
      tables: {
        events: ["PutItem"],
        ...storing,
      },
      sendsTo: ["deliveries", "slowDeliveries"],
      rejectsTo: ["events"],
    },
  },
  "attempts-send": {
    file: "deliveries/sending/send",
    deploysGradually: true,
    settings: ["legacySignatureHeader", "events"],
    trigger: { kind: "queue", queue: "deliveries", batchSize: 10, maxConcurrency: 300 },
    timeoutSeconds: SENDER_TIMEOUT_SECONDS,
    memoryMb: SENDER_MEMORY_MB,
    uses: sending,
  },
  "attempts-send-slow": {
    file: "deliveries/sending/send-slow",
    deploysGradually: true,
    settings: ["legacySignatureHeader", "events"],
    trigger: { kind: "queue", queue: "slowDeliveries", batchSize: 10, maxConcurrency: 100 },
    timeoutSeconds: SENDER_TIMEOUT_SECONDS,
    memoryMb: SENDER_MEMORY_MB,
    uses: {
      ...sending,
      tables: {
        ...sending.tables,
        // UpdateItem: the results of a certification, which are in the same table.
        deliveries: [...sending.tables.deliveries, "UpdateItem"],
        backlog: [...sending.tables.backlog, "Query"],
      },
    },
  },
  "deliveries-sweep": {
    file: "deliveries/sending/sweep",
    trigger: { kind: "everyMinutes", minutes: 1 },
    timeoutSeconds: 55,
    memoryMb: 512,
    uses: {
      queries: ["backlog/due"],
      sendsTo: ["slowDeliveries"],
    },
  },
  "deliveries-publish-notifications": {
    file: "deliveries/intake/publish-notifications",
    trigger: { kind: "everyMinutes", minutes: 1 },
    timeoutSeconds: 55,
    memoryMb: 256,
    uses: {
      tables: {
        notifications: ["Query", "PutItem", "DeleteItem"],
        apiKeys: ["GetItem"],
        userApiKeys: ["GetItem"],
        ...storing,
      },
      queries: ["notifications/due"],
      sendsTo: ["slowDeliveries"],
      publishesTo: ["notifications"],
    },
  },
  "deliveries-replay": {
    file: "deliveries/intake/replay",
    settings: ["events"],
    trigger: { kind: "invoke" },
    // The AWS CLI waits for a response for a minute.
    timeoutSeconds: 55,
    memoryMb: 512,
    uses: {
      tables: {
        events: ["Query"],
        ...storing,
      },
      sendsTo: ["slowDeliveries"],
    },
  },
  "projects-upsert-member": {
    file: "identity/members/upsert-member",
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 256,
    uses: { tables: { ...changingMembers, projects: ["GetItem", "UpdateItem"] } },
  },
  "projects-remove-member": {
    file: "identity/members/remove-member",
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 256,
    uses: { tables: { ...changingMembers, memberVersions: ["UpdateItem"], projects: ["DeleteItem"] } },
  },
  "projects-sync-members": {
    file: "identity/members/sync-members",
    trigger: { kind: "invoke" },
    // Five thousand members, of which all may change.
    timeoutSeconds: 55,
    memoryMb: 512,
    uses: {
      tables: {
        ...changingMembers,
        memberVersions: ["GetItem", "Query", "UpdateItem", "DeleteItem"],
        projects: ["GetItem", "BatchGetItem", "UpdateItem", "DeleteItem"],
      },
    },
  },
  "projects-suspend": {
    file: "webhooks/webhook/suspend",
    trigger: { kind: "invoke" },
    timeoutSeconds: 30,
    memoryMb: 256,
    uses: {
      tables: {
        webhooks: ["Query", "GetItem", "UpdateItem"],
        auditEvents: ["PutItem"],
        revocations: ["PutItem"],
        notifications: ["PutItem", "Query"],
      },
    },
  },
  "api-keys-provision": {
    file: "identity/api-keys/provision",
    settings: ["permissions"],
    trigger: { kind: "invoke" },
    timeoutSeconds: 10,
    memoryMb: 256,
    uses: {
      tables: {
        apiKeys: ["PutItem"],
        userApiKeys: ["PutItem", "UpdateItem"],
        projects: ["BatchGetItem"],
        auditEvents: ["PutItem"],
        notifications: ["PutItem"],
      },
    },
  },
  "api-keys-import": {
    file: "identity/api-keys/import",
    settings: ["permissions", "importedKeys"],
    trigger: { kind: "invoke" },
    // A thousand keys, in transactions of 16, one after the other.
    timeoutSeconds: 55,
    memoryMb: 512,
    uses: {
      tables: {
        apiKeys: ["BatchGetItem", "PutItem"],
        userApiKeys: ["BatchGetItem", "PutItem", "UpdateItem"],
        auditEvents: ["PutItem"],
        notifications: ["PutItem"],
      },
    },
  },
  "api-keys-revoke-all": {
    file: "identity/api-keys/revoke-all",
    trigger: { kind: "invoke" },
    // All keys of a user, and those that are created meanwhile.
    timeoutSeconds: 55,
    memoryMb: 256,
    uses: {
      tables: {
        apiKeys: ["BatchGetItem", "GetItem", "DeleteItem"],
        userApiKeys: ["Query", "GetItem", "DeleteItem", "UpdateItem"],
        auditEvents: ["PutItem"],
        notifications: ["PutItem", "DeleteItem", "Query"],
        revocations: ["PutItem"],
      },
    },
  },
  "webhooks-import": {
    file: "webhooks/webhook/import",
    settings: ["events"],
    trigger: { kind: "invoke" },
    // A thousand webhooks, of as many projects.
    timeoutSeconds: 55,
    memoryMb: 512,
    uses: {
      tables: {
        webhooks: ["Query", "PutItem", "UpdateItem"],
        webhookSecrets: ["PutItem", "ConditionCheckItem"],
        auditEvents: ["PutItem"],
      },
    },
  },
} as const satisfies Record<string, WorkerFields>;

export type WorkerId = keyof typeof workers;

export const workerRows: readonly WorkerRow[] = Object.entries<WorkerFields>(workers).map(([id, row]) => ({
  ...row,
  id,
}));
