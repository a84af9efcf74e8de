import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/**
 * Secrets Manager as far as a reader of one secret sees it, on this machine, with the SDK pointed at it. There is no engine for
 * it that runs without Docker.
 */
export async function startSecretsManager(arn: string, SecretString: string): Promise<{ stop(): Promise<void> }> {
  const server = http.createServer(async (request, response) => {
    const { SecretId, VersionStage } = (await json(request)) as Record<string, string>;
    const isThere = SecretId === arn && VersionStage === "AWSCURRENT";
    const answer = isThere ? { ARN: arn, SecretString } : { __type: "ResourceNotFoundException" };
    const headers = { "content-type": "application/x-amz-json-1.1" };
    response.writeHead(isThere ? 200 : 400, headers).end(JSON.stringify(answer));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
