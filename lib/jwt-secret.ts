import { Annotations } from "aws-cdk-lib";
import { Key } from "aws-cdk-lib/aws-kms";
import { type ISecret, Secret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import type { KmsKey } from "./kms-key.ts";
import { deletedOnlyByRollback } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";
import { EXAMPLE_ISSUER } from "./stages.ts";

/**
 * Creates the secret with the HS256 key of the identity provider, or refers to an existing one (`jwt.secretArn`). A new
 * secret starts with a random value: no token is valid until the operator stores the provider's key. With an empty or
 * well-known initial value, anyone could sign a valid token.
 */
export function createJwtSecret(scope: Construct, stage: Stage, key?: KmsKey): ISecret {
  const { jwt } = stage;
  if (jwt?.issuer === EXAMPLE_ISSUER)
    Annotations.of(scope).addWarningV2(
      "jwt-example-issuer",
      "No one can sign in: jwt.issuer is an example. Set jwt.issuer and jwt.audience in lib/stages.ts to the iss and aud of the identity provider's tokens.",
    );
  if (jwt?.secretArn !== undefined) return existingSecret(scope, jwt.secretArn, jwt.secretKmsKeyArn);
  return new Secret(scope, "JwtSecret", {
    description:
      "HS256 key shared with the identity provider; verifies sign-in JWTs. " +
      "Operator: replace the random value with the provider's key as plain text, at least 32 bytes.",
    // A value in quotes counts as pasted by mistake (functions/identity/authentication/hs256.ts).
    generateSecretString: { passwordLength: 64, excludeCharacters: "\"'`" },
    removalPolicy: deletedOnlyByRollback(stage),
    ...(key && { encryptionKey: key }),
  });
}

function existingSecret(scope: Construct, secretCompleteArn: string, keyArn: string | undefined): ISecret {
  const encryptionKey = keyArn === undefined ? undefined : Key.fromKeyArn(scope, "JwtSecretKey", keyArn);
  return Secret.fromSecretAttributes(scope, "JwtSecret", {
    secretCompleteArn,
    ...(encryptionKey && { encryptionKey }),
  });
}
