import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { mintToken } from "../../bin/command/mint-token.ts";
import { type EventSources, startEventSources } from "../../bin/emulator/event-sources.ts";
import { createGateway } from "../../bin/emulator/gateway.ts";
import { fromSources } from "../../bin/emulator/lambda.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { handler as upsertMember } from "../../functions/identity/members/upsert-member.ts";
import { closeAfterFile } from "./cleanup.ts";
import { expectDocumentedCode } from "./documented-codes.ts";
import { freshResources } from "./resources.ts";

export interface Response {
  status: number;
  headers: Headers;
  // The parsed JSON of the response; undefined for an empty body.
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what is under test
  body: any;
}

/** Calls the API over HTTP with one credential. */
export interface Api {
  get(path: string): Promise<Response>;
  post(path: string, body?: unknown): Promise<Response>;
  patch(path: string, body: unknown): Promise<Response>;
  delete(path: string): Promise<Response>;
}

export interface TestService {
  baseUrl: string;
  /** Returns a client that sends `Authorization: Bearer <credential>`. */
  as(credential: string): Api;
  /** Creates a user with a JWT. */
  user(): { userId: string; token: string; api: Api };
  /** Adds the user to a project, by default a new one. Returns the id of the project. */
  project(userId: string, options?: { role?: "admin" | "viewer"; projectId?: string }): Promise<string>;
  stop(): Promise<void>;
}

/** A retry has its own message. What only a sweep starts waits this long; each sweep reads all shards. */
const SWEEP_EVERY_SECONDS = 3;

export const jwtSecret = randomBytes(32).toString("hex");

/**
 * Starts the real handlers behind the local gateway, over the embedded engines.
 * @param deliver also runs fan-out, send and sweep
 */
export async function startTestService({ deliver = false } = {}): Promise<TestService> {
  await freshResources();
  logSink.write = () => {};
  process.env.JWT_SECRET ??= jwtSecret;
  process.env.OIDC_ISSUERS ??= JSON.stringify([{ name: "github", audience: "deployments" }]);
  process.env.WEBHOOK_ALLOW_CIDRS ??= "127.0.0.0/8,::1/128";
  // Tests send more requests per second than users do. test/bin/emulator/ tests the throttle itself.
  const server = await createGateway(fromSources, undefined, () => true);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const eventSources: EventSources | undefined = deliver
    ? await startEventSources(sqs(), fromSources, SWEEP_EVERY_SECONDS)
    : undefined;
  const as = (credential: string) => apiClient(baseUrl, credential);
  return {
    baseUrl,
    as,
    user() {
      const userId = `user-${randomUUID()}`;
      const token = mintToken(process.env.JWT_SECRET ?? "", userId);
      return { userId, token, api: as(token) };
    },
    async project(userId, { role = "admin", projectId = randomUUID() } = {}) {
      await upsertMember({ user_id: userId, project_id: projectId, name: "Project", role });
      return projectId;
    },
    stop: closeAfterFile(async () => {
      await eventSources?.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }),
  };
}

/** Starts the service before the tests of the file. It stops after them. */
export function useService(options?: Parameters<typeof startTestService>[0]): TestService {
  const service = {} as TestService;
  beforeAll(async () => void Object.assign(service, await startTestService(options)));
  return service;
}

function apiClient(baseUrl: string, credential: string): Api {
  const call = async (method: string, path: string, body?: unknown): Promise<Response> =>
    send(`${baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${credential}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return {
    get: (path) => call("GET", path),
    post: (path, body) => call("POST", path, body),
    patch: (path, body) => call("PATCH", path, body),
    delete: (path) => call("DELETE", path),
  };
}

/** Sends one HTTP request and reads the body of the response. @throws Error when the API returns an undocumented code */
export async function send(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init);
  const text = await response.text();
  const body = text === "" ? undefined : JSON.parse(text);
  if (body?.error?.code !== undefined) expectDocumentedCode(init.method ?? "GET", url, body.error.code);
  return { status: response.status, headers: response.headers, body };
}
