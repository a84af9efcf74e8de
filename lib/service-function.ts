import { Duration, RemovalPolicy } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { Grants } from "../functions/manifest/grants-schema.ts";
import { type Data, environmentFor, statementsFor } from "./grants.ts";
import { keyStatementsFor } from "./key-grants.ts";
import type { KmsKey } from "./kms-key.ts";
import { constructId } from "./names.ts";
import { settingsFor } from "./settings.ts";
import type { Stage } from "./stage.ts";

/** What all functions of a stage have in common. */
export interface StageContext {
  stage: Stage;
  data: Data;
  key?: KmsKey | undefined;
  /** The bundle of a function, by its path below `functions/`. */
  code: (file: string) => lambda.Code;
}

export interface ServiceFunctionProps {
  /** Path below `functions/`; it names the function in the stack too. */
  file: string;
  description: string;
  uses: Grants;
  timeoutSeconds: number;
  memoryMb: number;
  /** Wins over the variables that follow from `uses` and the stage. Names without a value are left out. */
  environment?: Record<string, string | undefined>;
  recursiveLoop?: lambda.RecursiveLoop;
  /** Callers get an alias, which moves from version to version (gradual-deployment.ts). */
  hasAlias?: boolean;
}

/** A Lambda with this project's defaults, that can reach what its row names and nothing else. */
export class ServiceFunction extends Construct {
  readonly lambda: lambda.Function;
  readonly alias: lambda.Alias | undefined;

  constructor(scope: Construct, { stage, data, key, code }: StageContext, props: ServiceFunctionProps) {
    super(scope, constructId(props.file));
    const logGroup = new logs.LogGroup(this, "Logs", {
      retention: stage.logRetention,
      removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
      ...(key && { encryptionKey: key }),
    });
    // A role of our own: the one CDK would make may write to every log group of the account.
    const role = new iam.Role(this, "Role", { assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com") });
    logGroup.grantWrite(role);
    for (const statement of statementsFor(props.uses, data)) role.addToPolicy(statement);
    for (const statement of keyStatementsFor(props.uses, data)) role.addToPolicy(statement);

    this.lambda = new lambda.Function(this, "Function", {
      description: props.description,
      code: code(props.file),
      handler: "index.handler",
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: lambda.Architecture.ARM_64,
      timeout: Duration.seconds(props.timeoutSeconds),
      memorySize: props.memoryMb,
      environment: withoutGaps({
        STAGE: stage.name,
        ...environmentFor(props.uses, data),
        ...settingsFor(props.file, props.uses, stage),
        ...props.environment,
      }),
      role,
      logGroup,
      loggingFormat: lambda.LoggingFormat.JSON,
      // Lambda's own lines about a call that went well are most of a log, and its metrics know what they say.
      systemLogLevelV2: lambda.SystemLogLevel.WARN,
      // The way back to the version before is the alias, at once, as long as that version is there.
      ...(props.hasAlias && { currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN } }),
      ...(props.recursiveLoop && { recursiveLoop: props.recursiveLoop }),
    });
    if (props.hasAlias)
      this.alias = new lambda.Alias(this, "Live", { aliasName: "live", version: this.lambda.currentVersion });
  }

  /** What callers call. */
  get entry(): lambda.IFunction {
    return this.alias ?? this.lambda;
  }
}

function withoutGaps(variables: Record<string, string | undefined>): Record<string, string> {
  const set = Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(set);
}
