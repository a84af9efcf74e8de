import { Duration, RemovalPolicy } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { Uses } from "../functions/uses.ts";
import { type Data, environmentFor, statementsFor } from "./grants.ts";
import { constructId } from "./names.ts";
import type { Stage } from "./stages.ts";

/** What all functions of a stage have in common. */
export interface Surroundings {
  stage: Stage;
  data: Data;
  /** The bundle of a function, by its path below `functions/`. */
  code: (file: string) => lambda.Code;
}

export interface ServiceFunctionProps {
  /** Path below `functions/`; it names the function in the stack too. */
  file: string;
  description: string;
  uses: Uses;
  timeoutSeconds: number;
  memoryMb: number;
  /** Wins over the variables that follow from `uses`. Names without a value are left out. */
  environment?: Record<string, string | undefined>;
  recursiveLoop?: lambda.RecursiveLoop;
}

/** A Lambda with this project's defaults, that can reach what its row names and nothing else. */
export class ServiceFunction extends Construct {
  readonly lambda: lambda.Function;

  constructor(scope: Construct, { stage, data, code }: Surroundings, props: ServiceFunctionProps) {
    super(scope, constructId(props.file));
    const logGroup = new logs.LogGroup(this, "Logs", {
      retention: stage.logRetention,
      removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    // A role of our own: the one CDK would make may write to every log group of the account.
    const role = new iam.Role(this, "Role", { assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com") });
    logGroup.grantWrite(role);
    for (const statement of statementsFor(props.uses, data)) role.addToPolicy(statement);

    this.lambda = new lambda.Function(this, "Function", {
      description: props.description,
      code: code(props.file),
      handler: "index.handler",
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: lambda.Architecture.ARM_64,
      timeout: Duration.seconds(props.timeoutSeconds),
      memorySize: props.memoryMb,
      environment: withoutGaps({ ...environmentFor(props.uses, data), ...props.environment }),
      role,
      logGroup,
      loggingFormat: lambda.LoggingFormat.JSON,
      ...(props.recursiveLoop && { recursiveLoop: props.recursiveLoop }),
    });
  }
}

function withoutGaps(variables: Record<string, string | undefined>): Record<string, string> {
  const set = Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(set);
}
