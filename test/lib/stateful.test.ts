import { type Json, type Resource, SynthesizedStack } from "./synthesized.ts";

/*
 * The resources that hold data, and the API, whose address clients have stored. CloudFormation identifies a resource by
 * its logical id: with another id it creates a new, empty resource and retains or deletes the old one. Constructs may
 * move, but these ids must not change. If one has to change, first write a plan to migrate the data.
 */

const prod = new SynthesizedStack("prodWithKey");

const expected = {
  ApiF70053CD: "RestApi",
  JwtSecretB8834B39: "Secret, RetainExceptOnCreate",
  Key961B73FD: "Key, Retain",
  QueuesDeliveries9DF934B3: "Queue deployment-webhooks-prod-deliveries, RetainExceptOnCreate",
  QueuesDeliveriesDeadLetters76560C6C: "Queue deployment-webhooks-prod-deliveries-dlq, RetainExceptOnCreate",
  QueuesEvents3B99B77C: "Queue deployment-webhooks-prod-deployment-events, RetainExceptOnCreate",
  QueuesEventsDeadLetters49EFC383: "Queue deployment-webhooks-prod-deployment-events-dlq, RetainExceptOnCreate",
  QueuesSlowDeliveriesE0240CEB: "Queue deployment-webhooks-prod-deliveries-slow, RetainExceptOnCreate",
  SignatureSecretCF548E7F: "Secret, RetainExceptOnCreate",
  QueuesSlowDeliveriesDeadLetters0B9C4727: "Queue deployment-webhooks-prod-deliveries-slow-dlq, RetainExceptOnCreate",
  TablesApiKeys330F873D: "Table deployment-webhooks-prod-api-keys (key_hash), Retain",
  TablesAuditEvents5BE8596C: "Table deployment-webhooks-prod-audit-events (scope, id), Retain",
  TablesBacklog3DF707BA: "Table deployment-webhooks-prod-backlog (line, entry) (due: due_shard N, due), Retain",
  TablesDeliveries21CE5B69: "Table deployment-webhooks-prod-deliveries (webhook_id, id), Retain",
  TablesEventsE8DD42EA: "Table deployment-webhooks-prod-events (project_id, id), Retain",
  TablesIdempotencyKeys202702E1: "Table deployment-webhooks-prod-idempotency-keys (user_id, key), Retain",
  TablesMemberVersions2C078FC4: "Table deployment-webhooks-prod-member-versions (shard, member), Retain",
  TablesNotifications29081F10:
    "Table deployment-webhooks-prod-notifications (owner, due) (due: due_shard N, due_owner), Retain",
  TablesProjectsD51E92A2: "Table deployment-webhooks-prod-projects (user_id, project_id), Retain",
  TablesRequestBudgets32CB1332: "Table deployment-webhooks-prod-request-budgets (project_id, window), Retain",
  TablesRevocations4CFAEA74: "Table deployment-webhooks-prod-revocations (day, id), Retain",
  TablesServiceAccounts504A458F: "Table deployment-webhooks-prod-service-accounts (project_id, id), Retain",
  TablesTrustedWorkflows7AD42A88: "Table deployment-webhooks-prod-trusted-workflows (listed_under, entry), Retain",
  TablesUserApiKeys5AAFA72B: "Table deployment-webhooks-prod-user-api-keys (user_id, id), Retain",
  TablesWebhookSecrets2A52C5DB: "Table deployment-webhooks-prod-webhook-secrets (webhook_id), Retain",
  TablesWebhooks9E9DC764: "Table deployment-webhooks-prod-webhooks (project_id, id), Retain",
};

const statefulTypes = /::(RestApi|Secret|Key|Queue|Table)$/;

test("logical ids, names, keys and removal policies of stateful resources do not change", () => {
  const found = Object.keys(prod.template.Resources).flatMap((id) => {
    const resource = prod.target({ Ref: id });
    const type = statefulTypes.exec(resource.Type)?.[1];
    return type === undefined ? [] : [[id, summaryOf(type, resource)]];
  });
  expect(Object.fromEntries(found)).toEqual(expected);
});

function summaryOf(type: string, { Properties, DeletionPolicy, UpdateReplacePolicy }: Resource): string {
  const { QueueName, TableName, KeySchema, AttributeDefinitions, GlobalSecondaryIndexes = [] } = Properties;
  // A resource that is replaced or removed stays; only the rollback of the operation that created it may delete it.
  expect(UpdateReplacePolicy).toBe(DeletionPolicy === "RetainExceptOnCreate" ? "Retain" : DeletionPolicy);
  const keys = (schema: Json[]) => keysOf(schema, AttributeDefinitions);
  const indexes = GlobalSecondaryIndexes.map((index: Json) => `(${index.IndexName}: ${keys(index.KeySchema)})`);
  const what = [type, QueueName, TableName, KeySchema && `(${keys(KeySchema)})`, ...indexes].filter(Boolean).join(" ");
  return DeletionPolicy === undefined ? what : `${what}, ${DeletionPolicy}`;
}

/** Returns the partition key and the sort key, with their type unless it is a string. */
function keysOf(schema: Json[], attributes: Json[]): string {
  expect(schema.map(({ KeyType }) => KeyType)).toEqual(["HASH", "RANGE"].slice(0, schema.length));
  const typeOf = (name: string) => attributes.find(({ AttributeName }) => AttributeName === name).AttributeType;
  const names: string[] = schema.map(({ AttributeName }) => AttributeName);
  return names.map((name) => (typeOf(name) === "S" ? name : `${name} ${typeOf(name)}`)).join(", ");
}
