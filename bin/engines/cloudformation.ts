import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CloudFormationClient,
  CreateStackCommand,
  DeleteStackCommand,
  paginateListStackResources,
  UpdateStackCommand,
} from "@aws-sdk/client-cloudformation";
import { StartError } from "../command/start-error.ts";
import { type Engine, withServer } from "./engine.ts";

/** Stacks of test/lib/variants.ts, with the region that each is created in. */
const stacks = { dev: "us-east-1", prod: "us-east-1", everyOption: "eu-west-1", otherForms: "eu-west-1" };
/** The last one is young and lacks services. */
const LINTED_REGIONS = ["us-east-1", "eu-central-1", "mx-central-1"];
const PORT = 5_057;
const endpoint = `http://127.0.0.1:${PORT}`;

/** Rules that the templates break, each with the reason. Another finding fails the command. */
const answers: Record<string, string> = {
  I1022: "The CDK joins texts with Fn::Join, which means the same as Fn::Sub.",
  W3005: "The CDK makes a function depend on its role and its policies, of which the role alone is implied.",
  CKV_AWS_18: "As AwsSolutions-S1 in lib/nag-suppressions.ts.",
  CKV_AWS_21: "The files of the console are created again from the repository by each deployment.",
  CKV_AWS_26: "The messages of alarms have no data of users. A key of its own would cost more than the topic.",
  CKV_AWS_27: "SQS encrypts each queue with its own key unless kmsKey names another one.",
  CKV_AWS_28: "As AwsSolutions-DDB3 in lib/nag-suppressions.ts.",
  CKV_AWS_59: "As AwsSolutions-APIG4 in lib/nag-suppressions.ts.",
  CKV_AWS_68: "As AwsSolutions-CFR2 in lib/nag-suppressions.ts.",
  CKV_AWS_73: "The log follows a request by its id. X-Ray would store URLs and cost more than the requests.",
  CKV_AWS_86: "As AwsSolutions-CFR3 in lib/nag-suppressions.ts.",
  CKV_AWS_115: "Only the functions of reservedConcurrency take a share of the account's concurrency from the others.",
  CKV_AWS_116: "Queues retry and keep what fails; the sweep runs again every minute; the API reports its errors.",
  CKV_AWS_117:
    "The functions call DynamoDB, SQS and receivers on the internet. A VPC would add a NAT gateway, and protect nothing.",
  CKV_AWS_119: "DynamoDB encrypts each table with its own key unless kmsKey names another one.",
  CKV_AWS_120: "A cached response would outlive the revocation of its credential.",
  CKV_AWS_149: "Secrets Manager encrypts the secret with its own key unless kmsKey names another one.",
  CKV_AWS_158: "CloudWatch encrypts logs with its own key unless kmsKey names another one.",
  CKV_AWS_173: "The variables hold names of resources, and no secrets. Lambda encrypts them with its own key.",
  "RESOURCE_MISMATCH s3:GetObjectAttributes":
    "The wildcards of CDK's own Lambda, as AwsSolutions-IAM5 in lib/nag-suppressions.ts.",
  CKV_AWS_192: "The firewall counts requests. The functions run on Node, without Log4j.",
};

/** Resource types that moto cannot create, and records of a hosted zone that is no part of the stack. */
const left =
  /^(AWS::(ApiGateway::(Account|Authorizer|BasePathMapping|DomainName|GatewayResponse|Stage)|Cloud(Front::.*|Watch::Alarm)|CodeDeploy::.*|Lambda::(Alias|EventInvokeConfig)|Logs::MetricFilter|Route53::RecordSet|S3::BucketPolicy|SecretsManager::Secret|SNS::(Subscription|TopicPolicy)|SQS::QueuePolicy|WAFv2::.*)|Custom::.*)$/;

export const engine: Engine = {
  summary: "the stacks in moto's CloudFormation; cfn-lint, checkov and parliament over templates and policies",
  programs: ["moto_server", "cfn-lint", "checkov", "parliament"],
  install: "pipx install 'moto[server]' cfn-lint checkov parliament",
  async run() {
    const folder = mkdtempSync(join(tmpdir(), "engines-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const synthesize = join(import.meta.dirname, "../../test/lib/synthesize.ts");
    spawnSync(process.execPath, [synthesize, folder], { env: { ...process.env, CDK_VALIDATION: "false" } });
    const policies = join(folder, "policies");
    mkdirSync(policies);
    const files = Object.keys(stacks).map((name) => join(folder, `${name}.template`));
    for (const file of files) {
      const template = JSON.stringify(JSON.parse(readFileSync(file.replace(/template$/, "json"), "utf8")).template);
      writeFileSync(file, template);
      for (const policy of policiesIn(template)) {
        writeFileSync(join(policies, `${randomUUID()}.json`), JSON.stringify(policy));
      }
    }
    // The functions have no bundles here, so that moto is not to look for them.
    const env = { VALIDATE_LAMBDA_S3: "false" };
    await withServer(["moto_server", "-H", "127.0.0.1", "-p", String(PORT)], endpoint, { env }, async () => {
      for (const [name, region] of Object.entries(stacks)) await deploy(name, region, folder);
    });
    const lint = jsonOf("cfn-lint", "-c", "I", "-e", "-r", ...LINTED_REGIONS, "--format", "json", "-t", ...files);
    const json = ["-o", "json", "--compact", "--quiet", "--skip-download"];
    const check = jsonOf("checkov", "--framework", "cloudformation", ...json, "-f", ...files);
    const inFolder = ["--directory", policies, "--include_policy_extension", "json", "--json"];
    const audit = spawnSync("parliament", inFolder, { encoding: "utf8" }).stdout.split("\n").filter(Boolean);
    judge([
      ...lint.map(({ Rule }: Json) => Rule.Id),
      ...check.results.failed_checks.map(({ check_id }: Json) => check_id),
      ...audit.map((line) => JSON.parse(line)).map(({ issue, detail }) => `${issue} ${detail[0]?.action ?? detail}`),
    ]);
  },
};

// biome-ignore lint/suspicious/noExplicitAny: JSON of a template
type Json = any;

/**
 * Returns the template without what moto cannot create, and with the code of each function in a bucket, as the CDK
 * uploads it.
 */
function deployable(text: string): Json {
  const { Resources, Outputs } = JSON.parse(text);
  // moto asks of a method without an integration for its HTTP method, which AWS's documentation requires of others
  // only.
  const isLeft = ({ Type, Properties }: Json) => left.test(Type) || Properties?.Integration?.Type === "MOCK";
  const removed = new Map<string, Json>(Object.entries<Json>(Resources).filter(([, resource]) => isLeft(resource)));
  console.log(`  without ${[...new Set([...removed.values()].map(({ Type }) => Type))].sort().join(", ")}`);
  const kept = Object.entries(Resources).filter(([id]) => !removed.has(id));
  return JSON.parse(JSON.stringify({ Resources: Object.fromEntries(kept), Outputs }), (key, value) => {
    if (key === "DependsOn") return [value].flat().filter((id) => !removed.has(id));
    if (value?.ZipFile) return { S3Bucket: "bundles", S3Key: value.ZipFile };
    const join = value?.["Fn::Join"]?.[1];
    if (join?.[1] === ":live") return join[0];
    const id = value?.Ref ?? value?.["Fn::GetAtt"]?.[0];
    const { Type, Properties } = removed.get(id) ?? {};
    if (Type === "AWS::Lambda::Alias") return { "Fn::GetAtt": [Properties.FunctionName.Ref, "Arn"] };
    return Type === undefined ? value : `arn:aws:removed:us-east-1:111122223333:a:${id}:b`;
  });
}

async function deploy(StackName: string, region: string, folder: string): Promise<void> {
  console.log(`${StackName} in ${region}`);
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = new CloudFormationClient({ endpoint, region, credentials, maxAttempts: 1 });
  const template = deployable(readFileSync(join(folder, `${StackName}.template`), "utf8"));
  const input = () => ({ StackName, TemplateBody: JSON.stringify(template) });
  const resources = async () => {
    const found: string[] = [];
    for await (const { StackResourceSummaries = [] } of paginateListStackResources({ client }, { StackName })) {
      found.push(...StackResourceSummaries.map((each) => `${each.LogicalResourceId} ${each.PhysicalResourceId}`));
    }
    return found.sort();
  };
  await client.send(new CreateStackCommand(input()));
  const first = await resources();
  const ids = Object.keys(template.Resources);
  if (first.length !== ids.length) throw new StartError(`${first.length} of ${ids.length} resources were created.`);
  await client.send(new UpdateStackCommand(input()));
  const fn = Object.values<Json>(template.Resources).find(({ Properties }) => Properties.Code?.S3Key);
  fn.Properties.Code.S3Key += ", changed";
  await client.send(new UpdateStackCommand(input()));
  if (`${await resources()}` !== `${first}`) throw new StartError("An update has replaced a resource.");
  await client.send(new DeleteStackCommand({ StackName }));
  console.log(`  ${first.length} resources created, updated twice, and deleted`);
}

/** ARN of a resource that a policy names, after `arn:aws:`. */
const arns: Record<string, string> = {
  "AWS::DynamoDB::Table": "dynamodb:us-east-1:111122223333:table/name",
  "AWS::KMS::Key": "kms:us-east-1:111122223333:key/id",
  "AWS::Lambda::Alias": "lambda:us-east-1:111122223333:function:name:live",
  "AWS::Lambda::Function": "lambda:us-east-1:111122223333:function:name",
  "AWS::Logs::LogGroup": "logs:us-east-1:111122223333:log-group:name:*",
  "AWS::S3::Bucket": "s3:::name",
  "AWS::SecretsManager::Secret": "secretsmanager:us-east-1:111122223333:secret:name",
  "AWS::SNS::Topic": "sns:us-east-1:111122223333:name",
  "AWS::SQS::Queue": "sqs:us-east-1:111122223333:name",
};
const pseudo = { "AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "111122223333" };

/** Returns the policies of all roles, with ARNs instead of references. parliament knows no policies of resources. */
function policiesIn(text: string): Json[] {
  const { Resources } = JSON.parse(text);
  const resolved: Json = JSON.parse(text, (_, value) => {
    const join = value?.["Fn::Join"];
    if (join !== undefined) return join[1].join(join[0]);
    const id = value?.Ref ?? value?.["Fn::GetAtt"]?.[0];
    if (id === undefined) return value;
    return pseudo[id as keyof typeof pseudo] ?? `arn:aws:${arns[Resources[id]?.Type]}`;
  });
  const ofRoles = Object.values<Json>(resolved.Resources).filter(({ Type }) => Type.startsWith("AWS::IAM::"));
  const policies = ofRoles.flatMap(({ Properties }) => [Properties, ...(Properties.Policies ?? [])]);
  return policies.map(({ PolicyDocument }) => PolicyDocument).filter(Boolean);
}

const jsonOf = (program: string, ...args: string[]): Json =>
  JSON.parse(spawnSync(program, args, { encoding: "utf8", maxBuffer: 1e9 }).stdout);

/** Prints each rule that is broken. @throws StartError when one has no answer, or an answer has no finding */
function judge(rules: string[]): void {
  const counts = Map.groupBy(rules, (rule) => rule);
  for (const [rule, found] of counts) console.log(`${found.length} x ${rule}: ${answers[rule] ?? "no answer"}`);
  const open = [...counts.keys()].filter((rule) => !(rule in answers));
  const stale = Object.keys(answers).filter((rule) => !counts.has(rule));
  if (open.length + stale.length > 0) throw new StartError(`Without an answer: ${open}. No longer found: ${stale}.`);
}
