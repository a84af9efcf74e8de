import { RemovalPolicy } from "aws-cdk-lib";
import { Key } from "aws-cdk-lib/aws-kms";
import { type ISecret, Secret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { allow } from "./grants.ts";
import { keyStatementsForSecret } from "./key-grants.ts";
import type { KmsKey } from "./kms-key.ts";
import type { Stage } from "./stage.ts";
import type { Workers } from "./workers.ts";

/**
 * The secret that holds the identity provider's HS256 secret. A new one starts with a random value, so that nobody can
 * sign in until the operator puts the provider's value there: an empty or well-known one would let anybody in.
 */
export function createJwtSecret(scope: Construct, { jwt, keepsData }: Stage, key?: KmsKey): ISecret {
  if (jwt?.secretArn !== undefined) return existingSecret(scope, jwt.secretArn, jwt.secretKmsKeyArn);
  return new Secret(scope, "JwtSecret", {
    description:
      "The HS256 secret shared with the identity provider, which verifies sign-in JWTs. " +
      "Operator: replace the random value with the provider's secret as plain text, at least 32 bytes.",
    generateSecretString: { passwordLength: 64 },
    removalPolicy: keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
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

/** Lets the functions whose row says so read the secret's values, and tells them where they are. */
export function grantSecretRead(secret: ISecret, functions: Workers): void {
  for (const { file, uses } of workers as readonly WorkerRow[]) {
    if (!uses.reads?.includes("jwtSecret")) continue;
    const { lambda } = functions[file as keyof Workers];
    lambda.addEnvironment("JWT_SECRET_ARN", secret.secretArn);
    // Of the previous version too, which still counts while the secret is rotated.
    lambda.addToRolePolicy(allow(["secretsmanager:GetSecretValue"], [secret.secretArn]));
    for (const statement of keyStatementsForSecret(secret)) lambda.addToRolePolicy(statement);
  }
}
