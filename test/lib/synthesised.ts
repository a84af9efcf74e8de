import { join } from "node:path";
import { App } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code } from "aws-cdk-lib/aws-lambda";
import { ServiceStack } from "../../lib/service-stack.ts";
import type { Stage } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";

// The validation of the template against AWS's schemas takes seconds and runs at every `cdk synth`.
process.env.CDK_VALIDATION = "false";

// biome-ignore lint/suspicious/noExplicitAny: a template is JSON of which each test knows its part
export type Json = any;

export interface Resource {
  id: string;
  Type: string;
  Properties: Json;
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
}

/** A stage's template with the questions that the tests ask of it. */
export class Synthesised {
  readonly stack: ServiceStack;
  readonly template: Json;

  constructor(stage: Stage, { isUrgent = false } = {}) {
    // Each function's code is its file's name, by which a test finds it again.
    const code = (file: string) => Code.fromInline(`// ${file}`);
    this.stack = new ServiceStack(new App({ analyticsReporting: false }), `test-${stage.name}`, {
      stage,
      code,
      page: join(import.meta.dirname, "../../packages/console/src"),
      isUrgent,
    });
    this.template = Template.fromStack(this.stack).toJSON();
  }

  all(type: string): Resource[] {
    const resources = Object.entries<Json>(this.template.Resources);
    return resources.filter(([, { Type }]) => Type === type).map(([id, resource]) => ({ id, ...resource }));
  }

  /** The resource that a `Ref` or `Fn::GetAtt` points to. */
  target(reference: Json): Resource {
    const id = reference?.Ref ?? reference?.["Fn::GetAtt"]?.[0];
    const resource = this.template.Resources[id];
    if (resource === undefined) throw new Error(`Not a reference to a resource: ${JSON.stringify(reference)}`);
    return { id, ...resource };
  }

  table(name: string): Resource {
    return only(this.all("AWS::DynamoDB::Table").filter(({ Properties }) => Properties.TableName === name));
  }

  queue(name: string): Resource {
    return only(this.all("AWS::SQS::Queue").filter(({ Properties }) => Properties.QueueName === name));
  }

  functionFor(file: string): Resource {
    return only(this.all("AWS::Lambda::Function").filter((resource) => fileOf(resource) === file));
  }

  /** What a function may do, as `action on resource`, in order. */
  grants(file: string): string[] {
    const fn = this.functionFor(file);
    const role = this.target(fn.Properties.Role);
    expect(role.Properties).not.toHaveProperty("ManagedPolicyArns");
    expect(role.Properties).not.toHaveProperty("Policies");
    const policies = this.all("AWS::IAM::Policy").filter(({ Properties }) =>
      Properties.Roles.some((reference: Json) => reference.Ref === role.id),
    );
    const statements = policies.flatMap(({ Properties }) => Properties.PolicyDocument.Statement);
    return statements.flatMap((statement: Json) => this.#spellOut(statement, fn)).sort();
  }

  #spellOut({ Effect, Action, Resource }: Json, fn: Resource): string[] {
    expect(Effect).toBe("Allow");
    const names = [Resource].flat().map((resource) => this.#nameOf(resource, fn));
    return [Action].flat().flatMap((action) => names.map((name) => `${action} on ${name}`));
  }

  /** @throws Error for anything but one known resource, a wildcard for example */
  #nameOf(resource: Json, fn: Resource): string {
    const [arn, path] = resource["Fn::Join"]?.[1] ?? [resource, ""];
    const { id, Type, Properties } = this.target(arn);
    switch (Type) {
      case "AWS::DynamoDB::Table":
        return `table ${Properties.TableName}${path}`;
      case "AWS::SQS::Queue":
        return `queue ${Properties.QueueName}`;
      case "AWS::SecretsManager::Secret":
        return `secret ${id.replace(/[0-9A-F]{8}$/, "")}`;
      case "AWS::Logs::LogGroup":
        return id === fn.Properties.LoggingConfig.LogGroup.Ref ? "its log group" : `log group ${id}`;
      default:
        throw new Error(`A grant on ${Type}`);
    }
  }
}

/** Empty for a Lambda that CDK brings along: its code is not ours. */
export function fileOf({ Properties }: Resource): string {
  return Properties.Code.ZipFile?.replace("// ", "") ?? "";
}

export function only<Item>(items: Item[]): Item {
  expect(items).toHaveLength(1);
  return items[0] as Item;
}

export const dev = new Synthesised(stageNamed("dev"));
