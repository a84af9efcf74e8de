import { type ISecret, Secret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import type { KmsKey } from "./kms-key.ts";
import { deletedOnlyByRollback } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";

/**
 * Creates the secret from which the keys of projects follow that sign deliveries
 * (functions/webhooks/receiver/project-key.ts).
 */
export const createSignatureSecret = (scope: Construct, stage: Stage, key?: KmsKey): ISecret =>
  new Secret(scope, "SignatureSecret", {
    description: "The key pairs of all projects, which sign webhooks, follow from it. To rotate it: docs/runbook.md.",
    generateSecretString: { passwordLength: 64, excludePunctuation: true },
    removalPolicy: deletedOnlyByRollback(stage),
    ...(key && { encryptionKey: key }),
  });
