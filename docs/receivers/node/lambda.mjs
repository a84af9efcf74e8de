import { ConditionalCheckFailedException, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { verifyWebhook, WebhookVerificationError } from "./verify-webhook.mjs";

/*
 * AWS Lambda behind a function URL or API Gateway (REST or HTTP). Lambda stops when the answer is out, so the delivery goes
 * into a table (key `id`, a string; TTL on `expires_at`), whose stream starts the work. The SDK is part of the runtime.
 * WEBHOOK_SECRET and INBOX_TABLE are the function's environment; it needs dynamodb:PutItem on the table.
 */
const dynamo = new DynamoDBClient();
const KEPT_DAYS = 30;

export async function handler(event) {
  const body = Buffer.from(event.body ?? "", event.isBase64Encoded ? "base64" : "utf8");
  if (body.length > 1_000_000) return { statusCode: 413 };
  try {
    const { id } = verifyWebhook({ body, headers: event.headers, secret: process.env.WEBHOOK_SECRET });
    await keep(id, body.toString("utf8"));
    return { statusCode: 204 };
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    return { statusCode: 401, body: JSON.stringify({ error: error.code }) };
  }
}

async function keep(id, payload) {
  const expiresAt = Math.floor(Date.now() / 1000) + KEPT_DAYS * 24 * 3600;
  try {
    await dynamo.send(
      new PutItemCommand({
        TableName: process.env.INBOX_TABLE,
        Item: { id: { S: id }, payload: { S: payload }, expires_at: { N: String(expiresAt) } },
        ConditionExpression: "attribute_not_exists(id)",
      }),
    );
  } catch (error) {
    // It came before, and its row is there.
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
  }
}
