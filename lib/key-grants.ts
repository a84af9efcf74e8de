import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import type { Grants } from "../functions/manifest/grants-schema.ts";
import type { QueueKey } from "../functions/manifest/queues.ts";
import { type Data, tablesOf } from "./grants.ts";
import { actionsForSending } from "./kms-key.ts";

/* The rights on customers' keys that functions need for what they read and write. AWS's own keys ask for none. */

const forReading = ["kms:Decrypt", "kms:DescribeKey"];
const forWriting = ["kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"];
const forReceiving = ["kms:Decrypt"];

/** The rights on customer keys that a function needs for what it uses; none where there is no customer key. */
export function keyStatementsFor(uses: Grants, data: Data): PolicyStatement[] {
  const { tables = {}, sendsTo = [], rejectsTo = [] } = uses;
  const tablesByKey = Map.groupBy(tablesOf(uses), (table) => data.tables[table].encryptionKey?.keyArn);
  const onTables = [...tablesByKey].flatMap(([arn, names]) => {
    if (arn === undefined) return [];
    const writes = names.flatMap((name) => tables[name] ?? []).some((action) => /^(Put|Update|Delete)/.test(action));
    return [allowKeyUse(writes ? [...forReading, ...forWriting] : forReading, arn, "dynamodb")];
  });
  const queueKeys = [
    ...sendsTo.map((key) => data.queues[key].queue.encryptionMasterKey),
    ...rejectsTo.map((key) => data.queues[key].deadLetters.encryptionMasterKey),
  ].flatMap((key) => key?.keyArn ?? []);
  return [...onTables, ...[...new Set(queueKeys)].map((arn) => allowKeyUse(actionsForSending, arn, "sqs"))];
}

/** What Lambda needs to decrypt the messages of a queue on a function's behalf. */
export function keyStatementsForReading(queue: QueueKey, data: Data): PolicyStatement[] {
  const key = data.queues[queue].queue.encryptionMasterKey;
  return key ? [allowKeyUse(forReceiving, key.keyArn, "sqs")] : [];
}

export function keyStatementsForSecret(secret: ISecret): PolicyStatement[] {
  return secret.encryptionKey ? [allowKeyUse(["kms:Decrypt"], secret.encryptionKey.keyArn, "secretsmanager")] : [];
}

/** Only through the service that holds the data: what is encrypted elsewhere with the same key stays out of reach. */
function allowKeyUse(actions: string[], keyArn: string, service: string): PolicyStatement {
  return new PolicyStatement({
    actions,
    resources: [keyArn],
    conditions: { StringLike: { "kms:ViaService": `${service}.*.amazonaws.com` } },
  });
}
