import { Duration, RemovalPolicy } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { Grants, SettingKey } from "../functions/foundation/manifest/grants-schema.ts";
import { environmentFor } from "./environment.ts";
import { allow, type StageResources, secretStatementsFor, statementsFor } from "./grants.ts";
import { kmsStatementsFor, statementsForSecret } from "./kms-grants.ts";
import type { KmsKey } from "./kms-key.ts";
import { createLogGroup } from "./log-group.ts";
import { constructId } from "./names.ts";
import { reservedConcurrencyOf, type Stage } from "./stage.ts";

/** The inputs that all functions of a stage share. */
export interface StageContext {
  stage: Stage;
  data: StageResources;
  key?: KmsKey | undefined;
  /** The events of the stage; absent = it has none of its own. */
  eventLayer?: lambda.ILayerVersion | undefined;
  /** Returns the bundle of a function by its row id. */
  code: (id: string) => lambda.Code;
}

export interface ServiceFunctionProps {
  /** Path below `functions/`. It also gives the construct its id. */
  id: string;
  description: string;
  uses: Grants;
  settings?: readonly SettingKey[];
  reserves?: "authorizer" | "recover" | "verify";
  timeoutSeconds: number;
  memoryMb: number;
  /** Overrides the variables that follow from `uses` and the stage. Undefined values are left out. */
  environment?: Record<string, string | undefined>;
  /** Shared with other functions; absent = one of its own. */
  logGroup?: ILogGroup;
  recursiveLoop?: lambda.RecursiveLoop;
  /** Callers call an alias, which gradual-deployment.ts moves to new versions. */
  hasAlias?: boolean;
}

/** A Lambda function with this project's defaults and permissions for exactly what its row uses. */
export class ServiceFunction extends Construct {
  readonly lambda: lambda.Function;
  readonly alias: lambda.Alias | undefined;
  readonly #grants = new iam.PolicyDocument();

  constructor(scope: Construct, { stage, data, key, eventLayer, code }: StageContext, props: ServiceFunctionProps) {
    super(scope, constructId(props.id));
    const { logGroup = createLogGroup(this, "Logs", { stage, key }) } = props;
    // CDK's default role could write to every log group of the account. The policy is part of the role, not a resource of its
    // own: a stack has at most 500 resources.
    // https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      inlinePolicies: { Grants: this.#grants },
    });
    this.allow(allow(["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]));
    this.allow(...statementsFor(props.uses, data), ...kmsStatementsFor(props.uses, data));
    const pepper = props.settings?.includes("importedKeysPepper") ? stage.importedKeysPepper : undefined;
    if (pepper) this.allow(...statementsForSecret(pepper.secretArn, pepper.kmsKeyArn));
    // A policy of its own: the table's policy names the role, so the role cannot refer to the table.
    for (const statement of secretStatementsFor(props.uses, data)) role.addToPolicy(statement);

    const reserved = props.reserves && reservedConcurrencyOf(stage)[props.reserves];
    this.lambda = new lambda.Function(this, "Function", {
      description: props.description,
      code: code(props.id),
      handler: "index.handler",
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: lambda.Architecture.ARM_64,
      timeout: Duration.seconds(props.timeoutSeconds),
      memorySize: props.memoryMb,
      // Applies to the function with all its versions, so that both of a gradual deployment share it.
      ...(reserved !== undefined && { reservedConcurrentExecutions: reserved }),
      environment: environmentFor(props, stage, data),
      ...(eventLayer && props.settings?.includes("events") && { layers: [eventLayer] }),
      role,
      logGroup,
      loggingFormat: lambda.LoggingFormat.JSON,
      // Platform lines about successful calls would be most of the log, and the metrics contain the same information.
      systemLogLevelV2: lambda.SystemLogLevel.WARN,
      // Old versions stay, so that the alias can be moved back to one without a deployment. The version of a deployment
      // that is rolled back does not: Lambda publishes the same code only once, so the next attempt would fail.
      ...(props.hasAlias && { currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE } }),
      ...(props.recursiveLoop && { recursiveLoop: props.recursiveLoop }),
    });
    if (props.hasAlias)
      this.alias = new lambda.Alias(this, "Live", { aliasName: "live", version: this.lambda.currentVersion });
  }

  /** Adds permissions to the function's role. */
  allow(...statements: iam.PolicyStatement[]): void {
    this.#grants.addStatements(...statements);
  }

  /** Returns the invocation target for callers: the alias, or the function if it has no alias. */
  get entry(): lambda.IFunction {
    return this.alias ?? this.lambda;
  }
}
