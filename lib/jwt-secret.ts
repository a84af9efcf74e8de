import { RemovalPolicy } from "aws-cdk-lib";
import { type ISecret, Secret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import { mayCall } from "./grants.ts";
import type { ServiceFunction } from "./service-function.ts";
import type { Stage } from "./stages.ts";

/**
 * The secret that holds the identity provider's HS256 secret. A new one starts with a random value, so that nobody can
 * sign in until the operator puts the provider's value there: an empty or well-known one would let anybody in.
 */
export function createJwtSecret(scope: Construct, stage: Stage): ISecret {
  if (stage.jwtSecretArn !== undefined) return Secret.fromSecretCompleteArn(scope, "JwtSecret", stage.jwtSecretArn);
  return new Secret(scope, "JwtSecret", {
    description:
      "The HS256 secret shared with the identity provider, which verifies sign-in JWTs. " +
      "Operator: replace the random value with the provider's secret as plain text, at least 32 bytes.",
    generateSecretString: { passwordLength: 64 },
    removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
  });
}

/** Lets a function read the secret's values, the previous one too while it is rotated, and tells it where they are. */
export function letRead(secret: ISecret, reader: ServiceFunction): void {
  reader.lambda.addEnvironment("JWT_SECRET_ARN", secret.secretArn);
  reader.lambda.addToRolePolicy(mayCall(["secretsmanager:GetSecretValue"], [secret.secretArn]));
}
