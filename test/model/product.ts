import { registerHooks } from "node:module";
import type { Delivery } from "../../functions/deliveries/line/delivery.ts";
import type { World } from "./world.ts";

/*
 * Loads the functions of the product into the world of the model: what they take from outside is replaced in their source, and
 * a planted mistake is too. Each mistake loads its own copies.
 */

declare global {
  /** The world of the current schedule. */
  var model: World;
}

const functions = new URL("../../functions/", import.meta.url).href;

interface Replacement {
  /** Below `functions/`. */
  file: string;
  from: string;
  to: string;
}

const outside: Replacement[] = [
  {
    file: "foundation/platform/aws.ts",
    from: "documents ??= DynamoDBDocumentClient.from(",
    to: "if (globalThis.model) return globalThis.model.dynamoClient as never;\n  documents ??= DynamoDBDocumentClient.from(",
  },
  {
    file: "foundation/platform/aws.ts",
    from: "queueClient ??=",
    to: "if (globalThis.model) return globalThis.model.sqsClient as never;\n  queueClient ??=",
  },
  {
    file: "webhooks/receiver/receiver-client-pool.ts",
    from: "client ??= createClient();",
    to: "if (globalThis.model) return globalThis.model.post(url, headers) as never;\n  client ??= createClient();",
  },
  {
    file: "deliveries/sending/attempt.ts",
    from: 'import { setTimeout as sleep } from "node:timers/promises";',
    to: "const sleep = (_ms: number, _value: undefined, { signal }: { signal: AbortSignal }): Promise<void> => globalThis.model.untilSlow(signal);",
  },
  {
    file: "webhooks/webhook/webhook-store.ts",
    from: 'import { setTimeout as sleep } from "node:timers/promises";',
    to: "const sleep = async (_ms: number): Promise<void> => {};",
  },
  { file: "deliveries/sending/slow-mark.ts", from: "const FAST_RESPONSES = 20;", to: "const FAST_RESPONSES = 2;" },
  {
    file: "foundation/platform/random-id.ts",
    from: 'randomBytes(9).toString("base64url")',
    to: "globalThis.model.nonce()",
  },
  { file: "deliveries/log/send-test-delivery.ts", from: "randomUUID()", to: "globalThis.model.uuid()" },
];

/** A mistake, planted into the source of the product. */
export interface Mistake extends Replacement {
  name: string;
  /** It is found in this number of schedules. */
  within: number;
  /** A schedule that has found it, tried first. */
  seed?: number;
}

let planted: Mistake | undefined;

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    if (!resolved.url.startsWith(functions) || !planted) return resolved;
    return { ...resolved, url: `${resolved.url}?${encodeURIComponent(planted.name)}` };
  },
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.startsWith(functions)) return loaded;
    const file = url.slice(functions.length).replace(/\?.*/, "");
    const wanted = [...outside, ...(planted ? [planted] : [])].filter((replacement) => replacement.file === file);
    const source = wanted.reduce((text, { from, to }) => {
      if (text.split(from).length !== 2) throw new Error(`functions/${file} does not have this text once: ${from}`);
      return text.replace(from, () => to);
    }, String(loaded.source));
    return { ...loaded, source };
  },
});

/** Loads the product, with a mistake or as it is. */
export async function loadProduct(mistake?: Mistake) {
  planted = mistake;
  const [
    fanOut,
    send,
    sendSlow,
    sweep,
    redeliver,
    recover,
    test,
    suspend,
    webhooks,
    { createWebhook },
    circuit,
    { contentOf },
    { logSink },
  ] = await Promise.all([
    import("../../functions/deliveries/intake/fan-out.ts"),
    import("../../functions/deliveries/sending/send.ts"),
    import("../../functions/deliveries/sending/send-slow.ts"),
    import("../../functions/deliveries/sending/sweep.ts"),
    import("../../functions/deliveries/log/redeliver.ts"),
    import("../../functions/deliveries/log/recover.ts"),
    import("../../functions/deliveries/log/send-test-delivery.ts"),
    import("../../functions/webhooks/webhook/suspend.ts"),
    import("../../functions/webhooks/webhook/webhook-store.ts"),
    import("../../functions/webhooks/webhook/webhook.ts"),
    import("../../functions/webhooks/webhook/circuit-breaker.ts"),
    import("../../functions/deliveries/sending/delivery-content.ts"),
    import("../../functions/foundation/platform/log.ts"),
  ]);
  planted = undefined;
  logSink.write = (_level, line) => globalThis.model.logged(line);
  return {
    ...{ fanOut: fanOut.handler, send: send.handler, sendSlow: sendSlow.handler, sweep: sweep.handler },
    ...{ redeliver: redeliver.handler, recover: recover.handler, test: test.handler, suspend: suspend.handler },
    ...{ webhooks, createWebhook, checkCircuit: circuit.checkCircuit },
    sequenceOf: (delivery: Pick<Delivery, "id" | "event" | "body">) => Number(contentOf(delivery, {}).sequence),
  };
}
export type Product = Awaited<ReturnType<typeof loadProduct>>;
