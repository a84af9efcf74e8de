import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { closeAfterFile } from "./cleanup.ts";

/**
 * Starts a stub of Secrets Manager that holds these secrets, by their ARNs, and sets the SDK's endpoint to it. There is no embedded
 * engine.
 * @returns `stop` ends the stub
 */
export async function startSecretsManager(
  arn: string,
  secret: string,
  others: Record<string, string> = {},
): Promise<{ stop(): Promise<void> }> {
  const secrets: Record<string, string> = { ...others, [arn]: secret };
  const server = http.createServer(async (request, response) => {
    const { SecretId = "", VersionStage } = (await json(request)) as Record<string, string>;
    const SecretString = VersionStage === "AWSCURRENT" ? secrets[SecretId] : undefined;
    const isKnown = SecretString !== undefined;
    const output = isKnown ? { ARN: SecretId, SecretString } : { __type: "ResourceNotFoundException" };
    const headers = { "content-type": "application/x-amz-json-1.1" };
    response.writeHead(isKnown ? 200 : 400, headers).end(JSON.stringify(output));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    stop: closeAfterFile(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }),
  };
}
