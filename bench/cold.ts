import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as esbuild from "esbuild";
import { bundleFunctions } from "../bin/build/bundle-functions.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/api-keys/api-key.ts";
import * as apiKeys from "../functions/api-keys/api-key-store.ts";
import { type EndpointRow, endpoints } from "../functions/manifest/endpoints.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { upsertMember } from "../functions/projects/member-store.ts";
import { bundleFolder } from "../lib/names.ts";
import { eventOf, givenWebhook, newDelivery, sqsEvent } from "../test/support/deliveries.ts";
import { freshResources } from "../test/support/resources.ts";
import { validBodyOf } from "../test/support/valid-bodies.ts";
import { withStarted } from "./child.ts";
import { type Bench, cpuOf, figure, interleave, median, type Result, type Rounds, ratios, spread } from "./harness.ts";
import { startEngines } from "./receivers.ts";

/*
 * Measures the CPU time of a cold start of every bundle, from the start of the process to the end of the first DynamoDB response.
 * Lambda gives a function of 512 MB a third of a core, so CPU time is what the caller waits for. The rows say which bundles there
 * are. Each start runs a real bundle to the end of its call, and the result is checked.
 */

const ROUNDS: Rounds = { forMs: 120_000 };
const MAX_OF_FLOOR = 2.3;
const MAX_OF_FLOOR_AUTHORIZER = 2.2;

/** Loading this module takes half as long as the rest of a cold start. */
const UNDICI = "internal/deps/undici/undici";

interface Case {
  bundle: string;
  /** Returns the event of a call. */
  event(): object;
  /** @throws Error unless the result is correct */
  check?(result: unknown): void;
}

/** The output of `first-response.cjs`. */
interface Start {
  /** Absent when DynamoDB was not called. */
  cpuMs?: number;
  loaded: string[];
  result: unknown;
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

async function startOf(name: string, { bundle, event, check }: Case): Promise<Start> {
  const command = [process.execPath, join(folder, "first-response.cjs"), bundle, JSON.stringify(event())];
  const { output } = await cpuOf(command);
  const start: Start = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  check?.(start.result);
  assert.ok(!start.loaded.includes(UNDICI), `${name} loaded undici`);
  return start;
}

/** Returns a case for every row and for the floor, over one user with a key, a project and a webhook. */
async function casesOf(outdir: string, receiverUrl: string): Promise<Record<string, Case>> {
  const userId = randomUUID();
  const projectId = randomUUID();
  const { key, apiKey } = createApiKey(userId, { name: "bench" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
  await apiKeys.insert(apiKey);
  await upsertMember({ user_id: userId, project_id: projectId, name: "Bench", role: "admin" }, new Date());
  const { webhook } = await givenWebhook({ projectId, url: receiverUrl });
  const asUser = { requestId: "bench", domainName: "localhost", path: "/", authorizer: { userId, authType: "jwt" } };
  const bundleOf = (file: string) => join(outdir, bundleFolder(file), "index.js");

  const ofEndpoint = (row: EndpointRow): Case => ({
    bundle: bundleOf(row.file),
    event: () => ({
      headers: { "content-type": "application/json" },
      pathParameters: {
        id: randomUUID(),
        delivery_id: randomUUID(),
        service_account_id: randomUUID(),
        trusted_workflow_id: randomUUID(),
        project_id: projectId,
        webhook_id: webhook.id,
      },
      queryStringParameters: null,
      body: validBodyOf(row) ?? null,
      requestContext: asUser,
    }),
    check(result) {
      const { statusCode, body } = result as { statusCode: number; body: string };
      assert.ok(statusCode < 500, `${row.file} returned ${statusCode}: ${body}`);
    },
  });
  /** The events of the queues, and of functions that the platform invokes. */
  const eventOfQueue = {
    events: () => eventOf(projectId),
    deliveries: () => firstAttempt(),
    slowDeliveries: () => firstAttempt(),
  };
  const firstAttempt = () => ({
    kind: "first",
    delivery: { ...newDelivery(webhook), event_received_at: new Date().toISOString() },
  });
  const invocations: Record<string, object> = {
    "projects/upsert-member": { user_id: userId, project_id: projectId, name: "Bench" },
    "projects/suspend": { project_id: projectId, suspended: false },
    "api-keys/revoke-all": { user_id: randomUUID() },
    "api-keys/provision": { user_id: userId, name: "bench" },
    "deliveries/replay": { project_id: projectId, since: new Date().toISOString() },
  };
  const ofWorker = ({ file, trigger }: WorkerRow): Case => {
    const bundle = bundleOf(file);
    if (trigger.kind === "queue") {
      const check = (result: unknown) => assert.deepEqual(result, { batchItemFailures: [] });
      return { bundle, event: () => sqsEvent(eventOfQueue[trigger.queue]()), check };
    }
    if (trigger.kind !== "authorizer")
      return { bundle, event: () => invocations[file] ?? { user_id: userId, project_id: projectId } };
    return {
      bundle,
      event: () => ({
        methodArn: "arn:aws:execute-api:us-east-1:000000000000:api/local/GET/v1/projects",
        multiValueHeaders: { Authorization: [`Bearer ${key}`] },
        requestContext: { requestId: "bench" },
      }),
      check: (result) => assert.equal((result as { context: { userId: string } }).context.userId, userId),
    };
  };
  return {
    [FLOOR]: {
      bundle: await buildFloor(outdir),
      event: () => ({ key_hash: apiKey.key_hash }),
      check: (result) => assert.equal(result, userId),
    },
    ...Object.fromEntries(endpoints.map((row) => [row.file, ofEndpoint(row)])),
    ...Object.fromEntries(workers.map((row) => [row.file, ofWorker(row)])),
  };
}

/** @param isIncluded selects functions by their file; absent means all */
export function cold(rounds: Rounds, isIncluded: (file: string) => boolean = () => true): Promise<Result> {
  return withStarted(async (start) => {
    const outdir = mkdtempSync(join(tmpdir(), "bench-cold-"));
    await start(Promise.resolve({ end: async () => rmSync(outdir, { recursive: true, force: true }) }));
    const { origin } = await start(startEngines());
    await freshResources();
    process.env.JWT_SECRET = randomBytes(32).toString("hex");
    await bundleFunctions({ outdir });
    const cases = Object.entries(await casesOf(outdir, `${origin}/ok`)).filter(
      ([name]) => name === FLOOR || isIncluded(name),
    );
    const variants: Record<string, () => Promise<number>> = {};
    const silent: string[] = [];
    // The first start of each fills the caches of the operating system, and shows which functions call DynamoDB.
    for (const [name, one] of cases) {
      const first = await startOf(name, one).catch((error: unknown) => {
        // An event of a function that only the platform invokes may be missing above.
        if (one.check) throw error;
        console.error((error as Error).message);
        return { cpuMs: undefined };
      });
      if (first.cpuMs === undefined) silent.push(name);
      else variants[name] = async () => (await startOf(name, one)).cpuMs ?? Number.NaN;
    }
    return resultOf(await interleave(variants, rounds), silent);
  });
}

function resultOf(samples: Record<string, number[]>, silent: string[]): Result {
  const { [FLOOR]: floor = [], ...ours } = samples;
  const ofFloor = (name: string) => median(ratios(ours[name] ?? [], floor));
  const slowest = Object.keys(ours).sort((one, other) => ofFloor(other) - ofFloor(one));
  const others = slowest.filter((name) => name !== AUTHORIZER);
  const [worst = ""] = others;
  const over = others.filter((name) => ofFloor(name) > MAX_OF_FLOOR);
  return {
    tables: [
      {
        title: `CPU time from process start to the first DynamoDB response; median (range) of ${floor.length} starts`,
        columns: ["program", "CPU ms", "/ floor"],
        rows: [FLOOR, ...slowest].map((name) => {
          const times = samples[name] ?? [];
          return [name, spread(times), spread(ratios(times, floor))];
        }),
      },
    ],
    targets: [
      { name: `largest of ${slowest.length} bundles (${worst}) / floor`, value: ofFloor(worst), bound: MAX_OF_FLOOR },
      { name: "authorizer / floor", value: ofFloor(AUTHORIZER), bound: MAX_OF_FLOOR_AUTHORIZER },
      { name: "bundles over the bound", value: over.length, bound: 0 },
    ],
    notes: [
      `Plain http to an engine on this machine; on AWS each variant has the same additional TLS handshake. Floor: ${figure(median(floor))} ms.`,
      ...(silent.length > 0
        ? [`Not measured, because the call failed or did not use DynamoDB: ${silent.join(", ")}.`]
        : []),
    ],
  };
}

export const bench: Bench = {
  name: "cold",
  about: "process start to first DynamoDB response: all bundles, compared with a minimal program",
  run: () => cold(ROUNDS),
};
