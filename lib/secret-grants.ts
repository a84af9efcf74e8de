import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { functionRows } from "../functions/foundation/manifest/function-rows.ts";
import type { SecretKey } from "../functions/foundation/manifest/grants-schema.ts";
import { statementsForSecret } from "./kms-grants.ts";
import type { ServiceFunction } from "./service-function.ts";

const ARN_VARIABLES: Record<SecretKey, string> = {
  jwtSecret: "JWT_SECRET_ARN",
  signatureSecret: "SIGNATURE_SECRET_ARN",
};

/** Lets the functions that use a secret read it, and sets its ARN in their environment. @returns these functions */
export function grantSecretRead(
  name: SecretKey,
  secret: ISecret,
  functions: Record<string, ServiceFunction>,
): ServiceFunction[] {
  const readers = functionRows
    .filter(({ uses }) => uses.reads?.includes(name))
    .flatMap(({ id }) => functions[id] ?? []);
  for (const reader of readers) {
    reader.lambda.addEnvironment(ARN_VARIABLES[name], secret.secretArn);
    // All versions: the previous one is still accepted during a rotation.
    reader.allow(...statementsForSecret(secret.secretArn, secret.encryptionKey?.keyArn));
  }
  return readers;
}
