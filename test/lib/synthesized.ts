import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Synthesis } from "./synthesize.ts";
import type { VariantName } from "./variants.ts";

// biome-ignore lint/suspicious/noExplicitAny: a template is JSON of which each test knows its part
export type Json = any;

export interface Resource {
  id: string;
  Type: string;
  Properties: Json;
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
}

/** The synthesized stack of a variant (variants.ts), with the queries that tests need. */
export class SynthesizedStack {
  readonly synthesis: Synthesis;

  constructor(name: VariantName) {
    this.synthesis = JSON.parse(readFileSync(join(synthesizedFolder(), `${name}.json`), "utf8"));
  }

  get template(): Json {
    return this.synthesis.template;
  }

  get outputs(): Record<string, Json> {
    return this.template.Outputs;
  }

  all(type: string): Resource[] {
    const resources = Object.entries<Json>(this.template.Resources);
    return resources.filter(([, { Type }]) => Type === type).map(([id, resource]) => ({ id, ...resource }));
  }

  /** Returns the resource that a `Ref` or `Fn::GetAtt` refers to. */
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

  /** Returns the Lambda function of a file below `functions/`. */
  functionFor(id: string): Resource {
    return only(this.all("AWS::Lambda::Function").filter((resource) => idOf(resource) === id));
  }

  /** Returns the IAM statements of a function. */
  statementsOf(id: string): Json[] {
    const role = this.target(this.functionFor(id).Properties.Role);
    return [
      ...inlineStatementsOf(role),
      ...this.all("AWS::IAM::Policy").filter(isFor(role)).flatMap(policyStatementsOf),
    ];
  }

  /** Returns the IAM statements of all roles. */
  allStatements(): Json[] {
    return [
      ...this.all("AWS::IAM::Role").flatMap(inlineStatementsOf),
      ...this.all("AWS::IAM::Policy").flatMap(policyStatementsOf),
    ];
  }

  /** Returns the permissions of a function, as sorted texts `action on resource`. */
  grants(id: string): string[] {
    const fn = this.functionFor(id);
    const role = this.target(fn.Properties.Role);
    expect(role.Properties).not.toHaveProperty("ManagedPolicyArns");
    return this.statementsOf(id)
      .flatMap((statement) => this.#grantsOf(statement, fn))
      .sort();
  }

  #grantsOf({ Effect, Action, Resource }: Json, fn: Resource): string[] {
    expect(Effect).toBe("Allow");
    const names = [Resource].flat().map((resource) => this.#nameOf(resource, fn));
    return [Action].flat().flatMap((action) => names.map((name) => `${action} on ${name}`));
  }

  /** @throws Error for anything but a reference to a known resource, for example a wildcard */
  #nameOf(resource: Json, fn: Resource): string {
    const [arn, path] = resource["Fn::Join"]?.[1] ?? [resource, ""];
    const { id, Type, Properties } = this.target(arn);
    switch (Type) {
      case "AWS::DynamoDB::Table":
        return `table ${Properties.TableName}${path}`;
      case "AWS::SQS::Queue":
        return `queue ${Properties.QueueName}`;
      case "AWS::SNS::Topic":
        return `topic ${Properties.TopicName}`;
      case "AWS::SecretsManager::Secret":
        return `secret ${id.replace(/[0-9A-F]{8}$/, "")}`;
      case "AWS::Logs::LogGroup":
        return id === fn.Properties.LoggingConfig.LogGroup.Ref ? "its log group" : `log group ${id}`;
      default:
        throw new Error(`Unexpected grant on ${Type}`);
    }
  }
}

const inlineStatementsOf = ({ Properties }: Resource): Json[] =>
  (Properties.Policies ?? []).flatMap(({ PolicyDocument }: Json) => PolicyDocument.Statement);
const policyStatementsOf = ({ Properties }: Resource): Json[] => Properties.PolicyDocument.Statement;
const isFor =
  ({ id }: Resource) =>
  ({ Properties }: Resource): boolean =>
    Properties.Roles.some((reference: Json) => reference.Ref === id);

/** Returns the row id of a Lambda function; empty for the functions that CDK adds. */
export function idOf({ Properties }: Resource): string {
  return Properties.Code.ZipFile?.replace("// ", "") ?? "";
}

export function only<Item>(items: Item[]): Item {
  expect(items).toHaveLength(1);
  return items[0] as Item;
}

/**
 * Returns the folder with the synthesized variants. The first test file of a run that needs it creates it
 * (synthesize.ts); test files that run at the same time wait for it.
 */
function synthesizedFolder(): string {
  const folder = join(process.env.TEST_RUN_DIR as string, "synthesized");
  const result = join(folder, "result.txt");
  if (isFirst(folder)) {
    const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, "synthesize.ts"), folder], {
      // Without the validation against AWS's schemas, which takes seconds and runs at every `cdk synth`.
      env: { ...process.env, CDK_VALIDATION: "false" },
      encoding: "utf8",
    });
    writeFileSync(result, status === 0 ? "ok" : `Could not synthesize the stacks:\n${stderr}`);
  }
  for (let waitedMs = 0; !existsSync(result); waitedMs += POLL_MS) {
    if (waitedMs > MAX_WAIT_MS) throw new Error(`The stacks were not synthesized within ${MAX_WAIT_MS} ms.`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
  }
  const text = readFileSync(result, "utf8");
  if (text !== "ok") throw new Error(text);
  return folder;
}

const POLL_MS = 50;
const MAX_WAIT_MS = 120_000;

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

export const dev = new SynthesizedStack("dev");
