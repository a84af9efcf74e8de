import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { PublishCommand, SNSClient } from "@aws-sdk/client-sns";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { dynamo, secretsManager, sns, sqs } from "../../../../functions/foundation/platform/aws.ts";

/* The engines of tests accept any signature, so the signatures are compared with those of clients that nothing was changed in. */

Object.assign(process.env, {
  ...{
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "kö/+=",
    AWS_SESSION_TOKEN: "token",
  },
});
for (const service of ["DYNAMODB", "SQS", "SNS", "SECRETS_MANAGER"]) {
  process.env[`AWS_ENDPOINT_URL_${service}`] = "http://127.0.0.1:1";
}

interface Request {
  headers: Record<string, string>;
}
interface Signer {
  sign(request: Request, options: object): Promise<Request>;
}
// biome-ignore lint/suspicious/noExplicitAny: the clients have no common type
type Client = any;

const text = "ü, and 🚀";

test.each<[string, () => Client, Client, object]>([
  ["dynamodb", dynamo, new DynamoDBClient(), new ListTablesCommand({ ExclusiveStartTableName: "table" })],
  ["sqs", sqs, new SQSClient(), new SendMessageCommand({ QueueUrl: "http://127.0.0.1:1/0/q", MessageBody: text })],
  ["sns", sns, new SNSClient(), new PublishCommand({ TopicArn: "arn:aws:sns:eu-central-1:0:t", Message: text })],
  ["secretsmanager", secretsManager, new SecretsManagerClient(), new GetSecretValueCommand({ SecretId: text })],
])("calls of %s are signed as by an unchanged client, also the second one", async (service, client, judge, command) => {
  const sent: Request[] = [];
  const capture = () => async (args: { request: Request }) => {
    sent.push(args.request);
    throw new Error("It is not sent.");
  };
  client().middlewareStack.add(capture, { step: "deserialize", priority: "low", name: "capture" });
  for (let call = 0; call < 2; call++) await expect(client().send(command)).rejects.toThrow("It is not sent.");
  client().middlewareStack.remove("capture");
  const signer: Signer = await judge.config.signer();
  expect(sent).toHaveLength(2);
  for (const request of sent) {
    const { authorization, ...headers } = request.headers;
    const [, year, month, day, hour, minute, second] =
      /^(....)(..)(..)T(..)(..)(..)Z$/.exec(headers["x-amz-date"] ?? "") ?? [];
    const signingDate = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    Object.assign(request, { headers });
    const options = { signingDate, signingRegion: "eu-central-1", signingService: service };
    expect((await signer.sign(request, options)).headers.authorization).toBe(authorization);
    expect(authorization).toContain(`/eu-central-1/${service}/aws4_request`);
  }
});
