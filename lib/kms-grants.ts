import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { Grants } from "../functions/foundation/manifest/grants-schema.ts";
import type { QueueKey } from "../functions/foundation/manifest/queues.ts";
import { allow, type StageResources, tablesOf } from "./grants.ts";
import { actionsForSending } from "./kms-key.ts";

/* The permissions on customer managed KMS keys that functions need. AWS managed keys need none. */

const forReading = ["kms:Decrypt", "kms:DescribeKey"];
const forWriting = ["kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"];
const forReceiving = ["kms:Decrypt"];

/** Returns the statements on KMS keys that a function needs for its tables, queues and topics; empty without customer keys. */
export function kmsStatementsFor(uses: Grants, data: StageResources): PolicyStatement[] {
  const { tables = {}, sendsTo = [], rejectsTo = [], publishesTo = [] } = uses;
  const tablesByKey = Map.groupBy(tablesOf(uses), (table) => data.tables[table].encryptionKey?.keyArn);
  const onTables = [...tablesByKey].flatMap(([arn, names]) => {
    if (arn === undefined) return [];
    const hasWrites = names.flatMap((name) => tables[name] ?? []).some((action) => /^(Put|Update|Delete)/.test(action));
    return [allowThrough(hasWrites ? [...forReading, ...forWriting] : forReading, arn, "dynamodb")];
  });
  const queueKeys = [
    ...sendsTo.map((key) => data.queues[key].queue.encryptionMasterKey),
    ...rejectsTo.map((key) => data.queues[key].deadLetters.encryptionMasterKey),
  ].flatMap((key) => key?.keyArn ?? []);
  const topicKeys = publishesTo.flatMap((name) => data.topics[name].key?.keyArn ?? []);
  return [
    ...onTables,
    ...[...new Set(queueKeys)].map((arn) => allowThrough(actionsForSending, arn, "sqs")),
    ...[...new Set(topicKeys)].map((arn) => allowThrough(actionsForSending, arn, "sns")),
  ];
}

/** Returns the statements that the event source mapping of a function needs to decrypt the messages of a queue. */
export function kmsStatementsForConsuming(queue: QueueKey, data: StageResources): PolicyStatement[] {
  const key = data.queues[queue].queue.encryptionMasterKey;
  return key ? [allowThrough(forReceiving, key.keyArn, "sqs")] : [];
}

/** Returns the statements that a function needs to read all versions of a secret. @param keyArn absent = a key managed by AWS */
export const statementsForSecret = (secretArn: string, keyArn: string | undefined): PolicyStatement[] => [
  allow(["secretsmanager:GetSecretValue"], [secretArn]),
  ...(keyArn === undefined ? [] : [allowThrough(["kms:Decrypt"], keyArn, "secretsmanager")]),
];

/** Allows the use of a key only through one AWS service, so that data in other services stays inaccessible. */
function allowThrough(actions: string[], keyArn: string, service: string): PolicyStatement {
  return new PolicyStatement({
    actions,
    resources: [keyArn],
    conditions: { StringLike: { "kms:ViaService": `${service}.*.amazonaws.com` } },
  });
}
