import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { StartError } from "../../command/start-error.ts";

/* The AWS clients with which the smoke test and the drills act as an operator. Functions use none of them. */

/** A call to AWS failed: it was rejected, got no response, or could not be signed. */
export class AwsError extends StartError {
  constructor(action: string, { code, name, message }: NodeJS.ErrnoException) {
    const isUnsigned = name === "CredentialsProviderError" || message === "Region is missing";
    const advice = isUnsigned ? ". Set AWS_PROFILE and AWS_REGION." : "";
    super(`${action}: ${code ?? name}${message === "" ? "" : `: ${message}`}${advice}`);
  }
}

const named =
  <Args, Output>(next: (args: Args) => Promise<Output>, { commandName = "" }: { commandName?: string }) =>
  async (args: Args): Promise<Output> => {
    try {
      return await next(args);
    } catch (error) {
      throw new AwsError(commandName.replace(/Command$/, ""), error as Error);
    }
  };

const requestHandler = { connectionTimeout: 5_000, requestTimeout: 20_000, throwOnRequestTimeout: true };
const options = { requestHandler, maxAttempts: 4 };

export const cloudFormation = new CloudFormationClient(options);
export const cloudWatch = new CloudWatchClient(options);
/** Calls functions, once each: a drill counts its calls. */
export const lambda = new LambdaClient({ ...options, maxAttempts: 1 });

const first = { step: "initialize", priority: "high", name: "named" } as const;
cloudFormation.middlewareStack.add(named, first);
cloudWatch.middlewareStack.add(named, first);
lambda.middlewareStack.add(named, first);
