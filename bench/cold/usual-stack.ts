import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import { logMetrics } from "@aws-lambda-powertools/metrics/middleware";
import { Tracer } from "@aws-lambda-powertools/tracer";
import { captureLambdaHandler } from "@aws-lambda-powertools/tracer/middleware";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import jwt from "jsonwebtoken";
import { z } from "zod";

/*
 * A function behind an API as in the examples of the vendors: document client, middy, Powertools with logger, metrics and
 * tracer, zod, and jsonwebtoken for the credential.
 * https://docs.aws.amazon.com/powertools/typescript/latest/getting-started/usage-patterns/
 */

const logger = new Logger({ serviceName: "api-keys" });
const metrics = new Metrics({ namespace: "platform", serviceName: "api-keys" });
const tracer = new Tracer({ serviceName: "api-keys" });

const client = tracer.captureAWSv3Client(new DynamoDBClient({}));
const documents = DynamoDBDocumentClient.from(client);

const claims = z.object({ sub: z.string(), exp: z.number() });
const params = z.object({ key_hash: z.string().length(64) });

async function getKey(event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
  const token = event.headers.Authorization?.replace(/^Bearer /, "") ?? "";
  const { sub } = claims.parse(jwt.verify(token, process.env.JWT_SECRET ?? "", { algorithms: ["HS256"] }));
  const { key_hash } = params.parse(event.pathParameters);
  const { Item } = await documents.send(
    new GetCommand({ TableName: process.env.API_KEYS_TABLE, Key: { key_hash }, ConsistentRead: true }),
  );
  metrics.addMetric("reads", MetricUnit.Count, 1);
  logger.info("read", { user_id: sub });
  return { statusCode: Item?.user_id === sub ? 200 : 404, body: JSON.stringify({ data: Item?.user_id }) };
}

export const handler = middy(getKey)
  .use(injectLambdaContext(logger))
  .use(logMetrics(metrics))
  .use(captureLambdaHandler(tracer));
