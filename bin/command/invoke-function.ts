import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { constructId, stackName } from "../../lib/names.ts";
import { notRunning } from "./connect.ts";
import { findRunning } from "./running-service.ts";
import { readSettings, setFunctionDefaults, settingRows } from "./settings.ts";
import { StartError } from "./start-error.ts";

/** Longer than the timeout of the functions. */
const REQUEST_TIMEOUT_MS = 70_000;

/** The option of programs that call functions. */
export const stageOption = {
  value: "<stage on AWS>",
  about: "a deployed stage, with the credentials of the environment",
  shownDefault: "the local run",
};

/** The settings that they read. */
export const invocationSettings = [
  ...settingRows("DATA_DIR"),
  { name: "AWS_ENDPOINT_URL_LAMBDA", about: "address of the local run (default: the one with this DATA_DIR)" },
];

/**
 * Returns a function that invokes one of a stage, which it finds by the outputs of the stack, or of the local run.
 * @param id its row id
 * @param stage undefined = the local run at AWS_ENDPOINT_URL_LAMBDA, by default the one with this data directory
 * @returns a function that returns the result, and throws StartError with the message of an error of the function
 * @throws StartError when there is no such stage or local run
 */
export async function functionOf(
  id: string,
  stage: string | undefined,
): Promise<(payload: object) => Promise<unknown>> {
  const endpoint = stage === undefined ? await localEndpoint() : undefined;
  const FunctionName = stage === undefined ? id : await nameOnStage(id, stage);
  const requestHandler = { requestTimeout: REQUEST_TIMEOUT_MS, throwOnRequestTimeout: true };
  const client = new LambdaClient({ requestHandler, ...(endpoint !== undefined && { endpoint }) });
  return async (payload) => {
    const input = { FunctionName, Payload: JSON.stringify(payload) };
    const { FunctionError, Payload } = await client.send(new InvokeCommand(input));
    const result: unknown = JSON.parse(Payload?.transformToString() || "null");
    if (FunctionError !== undefined) throw new StartError(String(Object(result).errorMessage ?? FunctionError));
    return result;
  };
}

async function localEndpoint(): Promise<string> {
  const settings = readSettings();
  setFunctionDefaults(settings);
  const endpoint = process.env.AWS_ENDPOINT_URL_LAMBDA || (await findRunning(settings.dataDir))?.baseUrl;
  if (endpoint === undefined) throw notRunning(settings);
  return endpoint;
}

async function nameOnStage(id: string, stage: string): Promise<string> {
  const StackName = stackName({ name: stage });
  const output = `${constructId(id)}FunctionName`;
  try {
    const { Stacks: [stack] = [] } = await new CloudFormationClient().send(new DescribeStacksCommand({ StackName }));
    const name = stack?.Outputs?.find(({ OutputKey }) => OutputKey === output)?.OutputValue;
    if (name !== undefined) return name;
  } catch (error) {
    const advice = "Check the stage, AWS_PROFILE and AWS_REGION.";
    throw new StartError(`The stack ${StackName} cannot be read: ${(error as Error).message}. ${advice}`);
  }
  throw new StartError(`The stack ${StackName} has no output ${output}. Deploy this version to the stage first.`);
}
