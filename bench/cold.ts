import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as esbuild from "esbuild";
import { bundleFunctions } from "../bin/build/bundle-functions.ts";
import { mintToken } from "../bin/local/mint-token.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/api-keys/api-key.ts";
import * as apiKeys from "../functions/api-keys/api-key-store.ts";
import type { PendingDelivery } from "../functions/deliveries/delivery.ts";
import { upsertMember } from "../functions/projects/member-store.ts";
import { bundleFolder } from "../lib/names.ts";
import { givenWebhook, rowOf, sqsEvent } from "../test/support/deliveries.ts";
import { withDynamo } from "./dynamo.ts";
import { type Bench, cpuOf, interleave, KB, median, ratios, spread } from "./harness.ts";
import { firstAttempt, newDelivery } from "./units.ts";

/*
 * Measures the CPU time of a cold start, from the start of the process to the end of the first DynamoDB response. Lambda gives a
 * function of 512 MB a third of a core, so CPU time is what the caller waits for. Each start runs a real bundle to the end of
 * its call, and the result is checked.
 */

const ROUNDS = 15;
const MAX_OF_FLOOR = 2.3;
const MAX_OF_USUAL = 0.5;

/** Loading this module takes half as long as the rest of a cold start. */
const UNDICI = "internal/deps/undici/undici";

interface Case {
  bundle: string;
  /** Stores the data that the call needs and returns the event. */
  prepare(): Promise<object> | object;
  /** @throws Error unless the result is correct */
  check(result: unknown): Promise<void> | void;
  mayLoadUndici?: boolean;
}

/** The output of `first-response.cjs`. */
interface Start {
  cpuMs: number;
  wallMs: number;
  loaded: string[];
  result: unknown;
}

const functions = ["auth/authorizer", "api-keys/list", "webhooks/list", "attempts/send"] as const;
type Variant = "node alone" | "floor" | "usual stack" | (typeof functions)[number];

/** Variables that Lambda sets and packages read, for a request sampled by X-Ray as with active tracing. */
const lambda = {
  AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x",
  AWS_LAMBDA_FUNCTION_NAME: "bench",
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
  LAMBDA_TASK_ROOT: "/var/task",
  _X_AMZN_TRACE_ID: "Root=1-65f00000-000000000000000000000001;Parent=0000000000000001;Sampled=1",
};

const root = join(import.meta.dirname, "..");
const firstResponse = join(import.meta.dirname, "cold", "first-response.cjs");

/** Bundles the floor with the settings of our bundles. */
async function buildFloor(outdir: string): Promise<string> {
  const outfile = join(outdir, "floor.js");
  const options = { bundle: true, minify: true, platform: "node", target: "node24", format: "cjs" } as const;
  await esbuild.build({ ...options, entryPoints: [join(root, "bench/cold/floor.ts")], outfile });
  return outfile;
}

/** Bundles the usual stack as the Powertools documentation recommends: ESM, with `require` for CommonJS packages. */
async function buildUsualStack(outdir: string): Promise<string> {
  const outfile = join(outdir, "usual-stack.mjs");
  await esbuild.build({
    entryPoints: [join(root, "bench/cold/usual-stack.ts")],
    outfile,
    bundle: true,
    minify: true,
    platform: "node",
    target: "node24",
    format: "esm",
    mainFields: ["module", "main"],
    banner: { js: "import { createRequire } from 'module';const require = createRequire(import.meta.url);" },
    logLevel: "error",
  });
  return outfile;
}

async function startOf(name: Variant, { bundle, prepare, check, mayLoadUndici = false }: Case): Promise<Start> {
  const command = [process.execPath, firstResponse, bundle, JSON.stringify(await prepare())];
  const { output } = await cpuOf(command, { env: lambda });
  const start: Start = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  assert.ok(start.cpuMs > 0, `${name} got no response from DynamoDB`);
  await check(start.result);
  assert.ok(mayLoadUndici || !start.loaded.includes(UNDICI), `${name} loaded undici`);
  return start;
}

/** Returns the cases, over one user with a key, a project and a webhook. */
async function cases(outdir: string, receiverUrl: string): Promise<Record<Exclude<Variant, "node alone">, Case>> {
  const bundleOf = (file: (typeof functions)[number]) => join(outdir, bundleFolder(file), "index.js");
  const userId = randomUUID();
  const projectId = randomUUID();
  const { key, apiKey } = createApiKey(userId, { name: "bench" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
  await apiKeys.insert(apiKey);
  await upsertMember({ user_id: userId, project_id: projectId, name: "Bench", role: "admin" }, new Date());
  const { webhook } = await givenWebhook({ projectId, url: receiverUrl });
  const token = mintToken(process.env.JWT_SECRET ?? "", userId);
  const asUser = { requestId: "bench", domainName: "localhost", path: "/", authorizer: { userId, authType: "jwt" } };
  const hasId = (id: string) => (result: unknown) => {
    const { statusCode, body } = result as { statusCode: number; body: string };
    assert.equal(statusCode, 200);
    assert.deepEqual(
      JSON.parse(body).data.map((each: { id: string }) => each.id),
      [id],
    );
  };
  let delivery: PendingDelivery;
  return {
    floor: {
      bundle: await buildFloor(outdir),
      prepare: () => ({ key_hash: apiKey.key_hash }),
      check: (result) => assert.equal(result, userId),
    },
    "usual stack": {
      bundle: await buildUsualStack(outdir),
      prepare: () => ({
        headers: { Authorization: `Bearer ${token}` },
        pathParameters: { key_hash: apiKey.key_hash },
      }),
      check: (result) => assert.equal((result as { statusCode: number }).statusCode, 200),
      mayLoadUndici: true,
    },
    "auth/authorizer": {
      bundle: bundleOf("auth/authorizer"),
      prepare: () => ({
        methodArn: "arn:aws:execute-api:us-east-1:000000000000:api/local/GET/v1/projects",
        multiValueHeaders: { Authorization: [`Bearer ${key}`] },
        requestContext: { requestId: "bench" },
      }),
      check: (result) =>
        assert.deepEqual((result as { context: object }).context, { userId, authType: "api_key", keyId: apiKey.id }),
    },
    "api-keys/list": {
      bundle: bundleOf("api-keys/list"),
      prepare: () => ({ headers: {}, pathParameters: null, requestContext: asUser }),
      check: hasId(apiKey.id),
    },
    "webhooks/list": {
      bundle: bundleOf("webhooks/list"),
      prepare: () => ({ headers: {}, pathParameters: { project_id: projectId }, requestContext: asUser }),
      check: hasId(webhook.id),
    },
    "attempts/send": {
      bundle: bundleOf("attempts/send"),
      prepare() {
        delivery = newDelivery(webhook);
        return sqsEvent(firstAttempt(delivery));
      },
      async check(result) {
        assert.deepEqual(result, { batchItemFailures: [] });
        assert.equal((await rowOf(delivery)).status, "succeeded");
      },
    },
  };
}

async function measure(rounds: number) {
  const outdir = mkdtempSync(join(tmpdir(), "bench-cold-"));
  const receiver = http.createServer((request, response) => {
    request.resume().once("end", () => response.end("ok"));
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  Object.assign(process.env, { JWT_SECRET: randomBytes(32).toString("hex"), WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" });
  try {
    await bundleFunctions({ outdir });
    return await withDynamo(async () => {
      const every = await cases(outdir, `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`);
      const starts: Record<string, Start[]> = {};
      const variants = Object.entries(every).map(([name, one]): [string, () => Promise<number>] => [
        name,
        async () => {
          const start = await startOf(name as Variant, one);
          starts[name] = [...(starts[name] ?? []), start];
          return start.cpuMs;
        },
      ]);
      const nodeAlone = async () => (await cpuOf([process.execPath, "-e", "0"])).cpuMs;
      const samples = await interleave(
        { "node alone": nodeAlone, ...Object.fromEntries(variants) } as Record<Variant, () => Promise<number>>,
        rounds,
      );
      const kb = Object.fromEntries(
        Object.entries(every).map(([name, { bundle }]) => [name, statSync(bundle).size / KB]),
      );
      return { samples, starts, kb };
    });
  } finally {
    receiver.close();
    receiver.closeAllConnections();
    rmSync(outdir, { recursive: true, force: true });
  }
}

export async function cold(rounds: number) {
  const { samples, starts, kb } = await measure(rounds);
  const { floor, "usual stack": usual, "node alone": alone } = samples;
  const names = Object.keys(samples) as Variant[];
  return {
    tables: [
      {
        title: `CPU time from process start to the first DynamoDB response; median (range) of ${rounds} starts`,
        columns: ["program", "KB", "CPU ms", "wall ms", "/ floor", "/ usual stack", "undici"],
        rows: names.map((name) => {
          const own = samples[name];
          const seen = starts[name] ?? [];
          return [
            name,
            kb[name] ?? "",
            spread(own),
            seen.length > 0 ? spread(seen.map(({ wallMs }) => wallMs)) : "",
            spread(ratios(own, floor)),
            spread(ratios(own, usual)),
            seen.some(({ loaded }) => loaded.includes(UNDICI)) ? "loaded" : "",
          ];
        }),
      },
    ],
    targets: functions.flatMap((name) => [
      { name: `${name} / floor`, value: median(ratios(samples[name], floor)), bound: MAX_OF_FLOOR },
      { name: `${name} / usual stack`, value: median(ratios(samples[name], usual)), bound: MAX_OF_USUAL },
    ]),
    notes: [
      `Node alone, without a program, is ${spread(ratios(alone, floor))} of the floor.`,
      "Plain http to an engine on this machine; on AWS each variant has the same additional TLS handshake.",
      "The environment is that of Lambda with a sampled request; no daemon receives the data of the tracer.",
    ],
    data: samples,
  };
}

export const bench: Bench = {
  name: "cold",
  about: "process start to first DynamoDB response: our bundles, a minimal program, and the usual stack",
  run: () => cold(ROUNDS),
};
