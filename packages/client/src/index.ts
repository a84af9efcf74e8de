/* The published package: `import { createClient } from "@deployment-webhooks/client"`. */

export * from "./client.ts";
export * from "./errors.ts";
export * from "./values.ts";
export * from "./verify-webhook.ts";
