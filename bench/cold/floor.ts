import { createHash, createHmac } from "node:crypto";
import http from "node:http";

/* The minimal program that reads an item from DynamoDB: no SDK and no packages. No function can start with less CPU time. */

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
}

/**
 * Returns the headers of a DynamoDB call with its signature.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function signedHeaders(
  host: string,
  target: string,
  body: string,
  { accessKeyId, secretAccessKey, region }: Credentials,
  now: Date,
): Record<string, string> {
  const time = now.toISOString().replaceAll(/[:-]|\.\d+/g, "");
  const date = time.slice(0, 8);
  // The signature requires alphabetical order.
  const headers: Record<string, string> = {
    "content-type": "application/x-amz-json-1.0",
    host,
    "x-amz-date": time,
    "x-amz-target": target,
  };
  const names = Object.keys(headers).join(";");
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const canonical = ["POST", "/", "", lines.join(""), names, sha256(body)].join("\n");
  const scope = `${date}/${region}/dynamodb/aws4_request`;
  const key = [date, region, "dynamodb", "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(key, ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n")).toString("hex");
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

const agent = new http.Agent({ keepAlive: true });

export async function handler(event: { key_hash: string }): Promise<unknown> {
  const { AWS_ENDPOINT_URL_DYNAMODB = "", API_KEYS_TABLE, AWS_REGION = "" } = process.env;
  const { AWS_ACCESS_KEY_ID = "", AWS_SECRET_ACCESS_KEY = "" } = process.env;
  const url = new URL(AWS_ENDPOINT_URL_DYNAMODB);
  const body = JSON.stringify({
    TableName: API_KEYS_TABLE,
    Key: { key_hash: { S: event.key_hash } },
    ConsistentRead: true,
  });
  const credentials = { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY, region: AWS_REGION };
  const headers = signedHeaders(url.host, "DynamoDB_20120810.GetItem", body, credentials, new Date());
  const responseBody = await new Promise<string>((resolve, reject) => {
    const request = http.request(url, { method: "POST", headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece) => {
        text += piece;
      });
      response.once("end", () => resolve(text));
    });
    request.once("error", reject);
    request.end(body);
  });
  return JSON.parse(responseBody).Item?.user_id?.S;
}
