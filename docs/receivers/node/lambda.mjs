import { ConditionalCheckFailedException, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { verifyWebhook, WebhookVerificationError } from "./verify-webhook.mjs";

/*
 * AWS Lambda behind a function URL or API Gateway (REST or HTTP). Lambda freezes after the response, so the delivery is stored
 * in a table (key `id`, a string; TTL on `expires_at`) whose stream triggers the processing. The SDK is part of the runtime.
 * Environment: WEBHOOK_SECRET, INBOX_TABLE. The function needs dynamodb:PutItem on the table.
 */
const dynamo = new DynamoDBClient();
const RETENTION_DAYS = 30;

export async function handler(event) {
  const body = Buffer.from(event.body ?? "", event.isBase64Encoded ? "base64" : "utf8");
  if (body.length > 1_000_000) return { statusCode: 413 };
  try {
    const { id, payload } = verifyWebhook({ body, headers: event.headers, secret: process.env.WEBHOOK_SECRET });
    if (payload.data?.test !== true) await store(id, body.toString("utf8"));
    return { statusCode: 204 };
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    return { statusCode: error.status, body: JSON.stringify({ error: error.code }) };
  }
}

async function store(id, payload) {
  const expiresAt = Math.floor(Date.now() / 1000) + RETENTION_DAYS * 24 * 3600;
  try {
    await dynamo.send(
      new PutItemCommand({
        TableName: process.env.INBOX_TABLE,
        Item: { id: { S: id }, payload: { S: payload }, expires_at: { N: String(expiresAt) } },
        ConditionExpression: "attribute_not_exists(id)",
      }),
    );
  } catch (error) {
    // The condition fails for a repeated delivery, whose row exists.
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
  }
}
