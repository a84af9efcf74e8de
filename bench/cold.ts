import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { APIGatewayAuthorizerResult, APIGatewayProxyResult, SQSBatchResponse } from "aws-lambda";
import * as esbuild from "esbuild";
import { bundleFunctions } from "../bin/build/bundle-functions.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/api-keys/api-key.ts";
import * as apiKeys from "../functions/api-keys/api-key-store.ts";
import type { EndpointRow } from "../functions/manifest/endpoints.ts";
import { endpointRows } from "../functions/manifest/function-rows.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { upsertMember } from "../functions/projects/member-store.ts";
import { bundleFolder } from "../lib/names.ts";
import { eventOf, givenWebhook, newDelivery, sqsEvent, workCall } from "../test/support/deliveries.ts";
import { freshResources } from "../test/support/resources.ts";
import { validBodyOf } from "../test/support/valid-bodies.ts";
import { withStarted } from "./child.ts";
import { type Bench, interleave, percentile, type Result, type Rounds, spread, tableOf } from "./harness.ts";
import { startEngines } from "./receivers.ts";

/*
 * Measures the CPU time of a cold start of every bundle, from the start of the process to the end of the first DynamoDB response.
 * Lambda gives a function of 512 MB a third of a core, so CPU time is what the caller waits for. The rows say which bundles there
 * are. Each start runs a real bundle to the end of its call, and the result is checked.
 */

const ROUNDS: Rounds = { forMs: 120_000 };
const MAX_START_MS = 60_000;
const MAX_OF_FLOOR = 2.3;
const MAX_OF_FLOOR_AUTHORIZER = 2.2;

/** Loading this module takes half as long as the rest of a cold start. */
const UNDICI = "internal/deps/undici/undici";

interface Case {
  bundle: string;
  /** Returns the event of a call. */
  event(): object;
}

/** The output of `first-response.cjs`. */
interface Start {
  /** Absent when DynamoDB was not called. */
  cpuMs?: number;
  loaded: string[];
  result?: Partial<APIGatewayProxyResult & SQSBatchResponse & APIGatewayAuthorizerResult> | null;
}

const FLOOR = "floor";
const AUTHORIZER = "auth/authorizer";

const folder = join(import.meta.dirname, "cold");

/** Bundles the program to compare with, as ours are. */
async function buildFloor(outdir: string): Promise<string> {
  const outfile = join(outdir, "floor.js");
  const common = { bundle: true, minify: true, platform: "node", target: "node24", logLevel: "error" } as const;
  await esbuild.build({ ...common, entryPoints: [join(folder, "floor.ts")], outfile, format: "cjs" });
  return outfile;
}

async function startOf(name: string, { bundle, event }: Case): Promise<Start> {
  const args = [join(folder, "first-response.cjs"), bundle, JSON.stringify(event())];
  // Without compiled code of an earlier run, which would hide what a start costs.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: MAX_START_MS }).catch(
    ({ stderr = "" }: { stderr?: string }) => {
      // The end has the cause. The start is the line of the bundle.
      throw new Error(`${name} failed, see its event in bench/cold.ts: ${stderr.slice(-1_000)}`);
    },
  );
  const start: Start = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  const { statusCode = 200, batchItemFailures = [], policyDocument } = start.result ?? {};
  const isRejected = policyDocument?.Statement[0]?.Effect === "Deny";
  const isCorrect = statusCode < 500 && batchItemFailures.length === 0 && !isRejected;
  assert.ok(isCorrect, `${name} returned ${JSON.stringify(start.result)}`);
  assert.ok(!start.loaded.includes(UNDICI), `${name} loaded undici`);
  return start;
}

/** Returns a case for every row and for the floor, over one user with a key, a project and a webhook. */
async function casesOf(outdir: string, receiverUrl: string): Promise<Record<string, Case>> {
  const [user_id, project_id] = [randomUUID(), randomUUID()];
  const { key, apiKey } = createApiKey(user_id, { name: "bench" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
  await apiKeys.insert(apiKey);
  await upsertMember({ user_id, project_id }, { name: "Bench", role: "admin" }, undefined, new Date());
  const { webhook } = await givenWebhook({ projectId: project_id, url: receiverUrl });
  const authorizer = { userId: user_id, authType: "jwt" };
  const ids: Record<string, string> = { project_id, webhook_id: webhook.id };
  const request = (row: EndpointRow) => ({
    headers: { "content-type": "application/json" },
    // Every other id is that of something that does not exist.
    pathParameters: Object.fromEntries(
      [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, ids[name] ?? randomUUID()]),
    ),
    queryStringParameters: null,
    body: validBodyOf(row) ?? null,
    requestContext: { requestId: "bench", domainName: "localhost", path: "/", authorizer },
  });
  const messages = {
    events: () => eventOf(project_id),
    deliveries: () => ({ kind: "first", delivery: newDelivery(webhook) }),
    slowDeliveries: () => workCall(webhook),
  };
  const now = new Date().toISOString();
  const member = { user_id, project_id, name: "Bench" };
  const invocations: Record<string, object> = {
    "auth/authorizer": {
      methodArn: "arn:aws:execute-api:us-east-1:000000000000:api/local/GET/v1/projects",
      multiValueHeaders: { Authorization: [`Bearer ${key}`] },
      requestContext: { requestId: "bench" },
    },
    "credentials/verify": { credentials: [{ token: key }] },
    "credentials/revocations": { after: now },
    "projects/upsert-member": member,
    "projects/remove-member": { user_id: randomUUID(), project_id },
    "projects/sync-members": { version: now, members: [{ ...member, role: "admin" }] },
    "projects/suspend": { project_id, suspended: false },
    "api-keys/revoke-all": { user_id: randomUUID() },
    "api-keys/provision": { user_id, name: "bench" },
    "api-keys/import": {
      keys: [{ hash: "ab".repeat(32), user_id, name: "bench", key_prefix: "bench_1", created_at: now }],
    },
    "webhooks/import": {
      webhooks: [{ project_id, url: receiverUrl, events: ["deploy.started"], secret: `whsec_${"a".repeat(32)}` }],
    },
    "deliveries/replay": { project_id, since: now },
  };
  const eventOfWorker = ({ file, trigger }: WorkerRow) => {
    if (trigger.kind === "queue") return sqsEvent(messages[trigger.queue]());
    if (trigger.kind === "everyMinutes") return {};
    const event = invocations[file];
    assert.ok(event, `bench/cold.ts has no event for ${file}`);
    return event;
  };
  const caseOf = (file: string, event: () => object): [string, Case] => [
    file,
    { bundle: join(outdir, bundleFolder(file), "index.js"), event },
  ];
  return {
    [FLOOR]: { bundle: await buildFloor(outdir), event: () => ({ key_hash: apiKey.key_hash }) },
    ...Object.fromEntries(endpointRows.map((row) => caseOf(row.file, () => request(row)))),
    ...Object.fromEntries(workers.map((row) => caseOf(row.file, () => eventOfWorker(row)))),
  };
}

/** @param isIncluded selects functions by their file; absent means all */
export function cold(rounds: Rounds, isIncluded: (file: string) => boolean = () => true): Promise<Result> {
  return withStarted(async (start) => {
    const outdir = mkdtempSync(join(tmpdir(), "bench-cold-"));
    await start({ end: async () => rmSync(outdir, { recursive: true, force: true }) });
    const { origin } = await start(startEngines());
    await freshResources();
    process.env.JWT_SECRET = randomBytes(32).toString("hex");
    process.env.IMPORTED_KEYS = '[{"prefix":"bench_","hash":"sha256"}]';
    await bundleFunctions({ outdir });
    const cases = Object.entries(await casesOf(outdir, `${origin}/ok`)).filter(
      ([name]) => name === FLOOR || isIncluded(name),
    );
    const variants: Record<string, () => Promise<number>> = {};
    const silent: string[] = [];
    // The first start of each fills the caches of the operating system, and shows which functions call DynamoDB.
    for (const [name, one] of cases) {
      const { cpuMs } = await startOf(name, one);
      if (cpuMs === undefined) silent.push(name);
      else variants[name] = async () => (await startOf(name, one)).cpuMs ?? Number.NaN;
    }
    return resultOf(await interleave(variants, rounds), silent);
  });
}

function resultOf(samples: Record<string, number[]>, silent: string[]): Result {
  const { [FLOOR]: floor = [], ...ours } = samples;
  // Other programs on the machine only add CPU time, so the tenth percentiles are compared.
  const least = (name: string) => percentile(10, samples[name] ?? []);
  const ofFloor = (name: string) => least(name) / least(FLOOR);
  const slowest = Object.keys(ours).sort((one, other) => ofFloor(other) - ofFloor(one));
  const others = slowest.filter((name) => name !== AUTHORIZER);
  const [worst = ""] = others;
  const over = others.filter((name) => ofFloor(name) > MAX_OF_FLOOR);
  return {
    tables: [
      tableOf(
        `CPU time from process start to the first DynamoDB response; median (range) of ${floor.length} starts, ratio of the tenth percentiles`,
        [FLOOR, ...slowest].map((program) => {
          return { program, "CPU ms": spread(samples[program] ?? []), "/ floor": ofFloor(program) };
        }),
      ),
    ],
    targets: [
      { name: `largest of ${slowest.length} bundles (${worst}) / floor`, value: ofFloor(worst), bound: MAX_OF_FLOOR },
      { name: "authorizer / floor", value: ofFloor(AUTHORIZER), bound: MAX_OF_FLOOR_AUTHORIZER },
      { name: "bundles over the bound", value: over.length, bound: 0 },
    ],
    notes: [
      "Plain http to an engine on this machine; on AWS each variant has the same additional TLS handshake.",
      ...(silent.length > 0 ? [`Not measured, because the call did not use DynamoDB: ${silent.join(", ")}.`] : []),
    ],
  };
}

export const bench: Bench = {
  name: "cold",
  about: "process start to first DynamoDB response: all bundles, compared with a minimal program",
  run: () => cold(ROUNDS),
};
