import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signatureHeaders } from "../../../functions/webhooks/receiver/signature.ts";
import type { DeploymentEvent } from "../../../packages/client/src/client.ts";
import { deploymentsOf, mergeEvents } from "../../../packages/client/src/deployment-timeline.ts";
import { detailOf } from "../../../packages/client/src/event-detail.ts";
import { deliveryFiltersOf, eventFiltersOf, idOf } from "../../../packages/console/src/data/address-filters.ts";
import { bodyOf, curlOf, headersOf } from "../../../packages/console/src/data/attempt-request.ts";
import { attemptBars, attemptScale, linesThrough, scaleTop } from "../../../packages/console/src/data/chart-points.ts";
import { routeOf, withQuery } from "../../../packages/console/src/data/route.ts";
import { percent } from "../../../packages/console/src/data/share.ts";
import { needs } from "../../support/optional-program.ts";

/* What the lists, the timeline and the charts of the console show, computed without a browser. */

const id = "01930000-0000-7000-8000-00000000d301";

describe("filters in the address", () => {
  test.each([
    [{}, {}],
    [
      { status: "failed", event: "deploy.failed", deployment_id: id, error_code: "timeout" },
      { status: "failed", event: "deploy.failed", deployment_id: id, error_code: "timeout" },
    ],
    [{ deployment_id: id.toUpperCase() }, { deployment_id: id }],
    [{ since: "2026-11-21T12:00:00+01:00" }, { since: "2026-11-21T11:00:00.000Z" }],
    [{ since: "2026-11-21T12:00", until: "yesterday" }, {}],
    [{ status: "lost", event: "deploy", deployment_id: "../keys", error_code: "", other: "x" }, {}],
  ])("%j is read as %j: values that the API rejects are left out", (query, filters) => {
    expect(deliveryFiltersOf(query)).toEqual(filters);
  });

  test("the list of events takes only an event and a deployment", () => {
    const query = { event: "deploy.started", deployment_id: id, status: "failed" };
    expect(eventFiltersOf(query)).toEqual({ event: "deploy.started", deployment_id: id });
  });

  test("filters are the same after they were written to an address and read from it", () => {
    const filters = { status: "held", since: "2026-11-21T11:00:00.000Z", error_code: "dns_error" };
    const hash = withQuery(`#/projects/${id}/deliveries`, { ...filters, event: undefined, deployment_id: "" });
    const route = routeOf(hash);
    expect(route).toEqual({ name: "project", projectId: id, view: "deliveries", query: filters });
    expect(deliveryFiltersOf("query" in route ? route.query : {})).toEqual(filters);
    expect(withQuery("#/keys", {})).toBe("#/keys");
  });

  test.each([
    [` ${id.toUpperCase()}\n`, id],
    ["0193", undefined],
    ["", undefined],
  ])("the text %j is read as the deployment id %j", (text, expected) => {
    expect(idOf(text)).toBe(expected);
  });
});

describe("the request of an attempt", () => {
  const delivery = {
    id,
    event: "deploy.failed" as const,
    payload: {
      event: "deploy.failed" as const,
      project_id: id,
      deployment_id: id,
      timestamp: "2026-11-21T12:00:00Z",
      data: { reason: 'it\'s $HOME `id` \\ "é" !' },
    },
  };

  test("has the headers of the contract, and no value for the signatures", () => {
    const signed = signatureHeaders({ deliveryId: id, at: new Date("2026-11-21T12:00:00.900Z"), body: "" }, "whsec_00");
    const headers = Object.fromEntries(headersOf(delivery, "2026-11-21T12:00:00.900Z"));
    expect(headers).toEqual({
      "Content-Type": "application/json",
      "User-Agent": "Deployment-Webhooks/1.0",
      "X-Service-Event": "deploy.failed",
      "X-Service-Delivery": id,
      ...signed,
      "X-Service-Signature": undefined,
      "webhook-signature": undefined,
    });
  });

  needs("openssl").describe("copied as curl", () => {
    test.each([
      ["of this service", `whsec_${"0123456789abcdef".repeat(4)}`],
      ["that was imported, with base64 without padding", "whsec_b2xkIHBsYXRmb3JtIQ"],
      ["that was imported, with text after whsec_", "whsec_old-platform.signing_key"],
      ["that was imported, with text that could be base64", "0123456789abcdef".repeat(4)],
    ])("sends the unchanged body with valid signatures, with a secret %s", (_, secret) => {
      const folder = mkdtempSync(join(tmpdir(), "curl-"));
      try {
        // Records its arguments and its input in place of sending them.
        writeFileSync(join(folder, "curl"), '#!/bin/sh\nprintf "%s\\n" "$@" > "$OUT/args"\ncat > "$OUT/body"\n');
        chmodSync(join(folder, "curl"), 0o755);
        const url = "https://example.com/it's?a=$b&c";
        const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, OUT: folder, WEBHOOK_SECRET: secret };
        execFileSync("/bin/sh", ["-eu", "-c", curlOf(url, delivery)], { env });
        const args = readFileSync(join(folder, "args"), "utf8").split("\n");
        const headers = new Map(
          args.filter((arg) => arg.includes(": ")).map((arg) => arg.split(": ") as [string, string]),
        );
        const body = readFileSync(join(folder, "body"), "utf8");
        expect(body).toBe(JSON.stringify(delivery.payload));
        expect(body).toBe(bodyOf(delivery));
        expect(args).toContain(url);
        expect(args.filter((arg) => arg.startsWith("webhook-timestamp"))).toHaveLength(1);
        const at = new Date(Number(headers.get("webhook-timestamp")) * 1000);
        expect(Math.abs(at.getTime() - Date.now())).toBeLessThan(60_000);
        expect(Object.fromEntries(headers)).toMatchObject(signatureHeaders({ deliveryId: id, at, body }, secret));
        expect(headers.get("X-Service-Event")).toBe("deploy.failed");
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
});

describe("the timeline of deployments", () => {
  const base = Date.parse("2026-11-21T12:00:00Z");
  const eventOf = (event: string, deployment: string, seconds: number, data: object = {}) =>
    ({
      id: `${event} ${deployment} ${seconds}`,
      event,
      deployment_id: deployment,
      timestamp: new Date(base + seconds * 1000).toISOString(),
      received_at: new Date(base + seconds * 1000).toISOString(),
      payload: { data },
    }) as DeploymentEvent;
  const [started, succeeded, failed] = ["deploy.started", "deploy.succeeded", "deploy.failed"] as const;

  test("groups events by deployment, the latest first, whatever the order of the events", () => {
    const events = [
      eventOf(succeeded, "b", 30),
      eventOf(failed, "a", 90),
      eventOf(started, "c", 100),
      eventOf(started, "a", 0),
      eventOf(started, "b", 10),
    ];
    for (const order of [events, [...events].reverse()]) {
      const shown = deploymentsOf(order).map(({ id, state, durationMs, steps }) => ({
        id,
        state,
        durationMs,
        steps: steps.map(({ event, sincePreviousMs }) => [event.event, sincePreviousMs]),
      }));
      expect(shown).toEqual([
        { id: "c", state: "running", durationMs: null, steps: [[started, null]] },
        {
          id: "a",
          state: "failed",
          durationMs: 90_000,
          steps: [
            [started, null],
            [failed, 90_000],
          ],
        },
        {
          id: "b",
          state: "succeeded",
          durationMs: 20_000,
          steps: [
            [started, null],
            [succeeded, 20_000],
          ],
        },
      ]);
    }
  });

  test("a deployment that starts again runs again, and its duration is that of the last run", () => {
    const first = [eventOf(started, "a", 0), eventOf(failed, "a", 60), eventOf(started, "a", 100)];
    expect(deploymentsOf(first)).toMatchObject([{ state: "running", durationMs: null }]);
    expect(deploymentsOf([...first, eventOf(succeeded, "a", 130)])).toMatchObject([
      { state: "succeeded", durationMs: 30_000 },
    ]);
  });

  test("an end at the time of its start is after it, and an end without its start has no duration", () => {
    // The order of the ids is the opposite.
    const [deployment] = deploymentsOf([{ ...eventOf(succeeded, "a", 5), id: "0" }, eventOf(started, "a", 5)]);
    expect(deployment).toMatchObject({ state: "succeeded", durationMs: 0 });
    expect(deploymentsOf([eventOf(failed, "a", 5)])).toMatchObject([{ state: "failed", durationMs: null }]);
    expect(deploymentsOf([])).toEqual([]);
  });

  test("two ends at the same time are in the order of their ids", () => {
    const [one, two] = [
      { ...eventOf(failed, "a", 5), id: "1" },
      { ...eventOf(succeeded, "a", 5), id: "2" },
    ];
    for (const order of [
      [one, two],
      [two, one],
    ])
      expect(deploymentsOf(order)).toMatchObject([{ state: "succeeded" }]);
  });

  test("an event that the feed returns again is shown once", () => {
    const [one, two] = [eventOf(started, "a", 0), eventOf(failed, "a", 1)];
    expect(mergeEvents([one], [{ ...one }, two])).toEqual([one, two]);
  });

  test.each([
    [{ status: "running", url: "https://a.example" }, "https://a.example"],
    [{ url: "", reason: "no memory" }, "no memory"],
    [{ reason: 7 }, undefined],
  ])("of the data %j it shows %j", (data, expected) => {
    expect(detailOf(eventOf(failed, "a", 0, data))).toBe(expected);
  });
});

describe("charts", () => {
  const size = { width: 100, height: 50 };
  const bucket = (attempts: number, succeeded: number) => ({ attempts, succeeded });

  test("successes go up from the line and failures go down, on one scale", () => {
    const buckets = [bucket(50, 50), bucket(30, 20), bucket(0, 0), bucket(10, 0)];
    expect(attemptBars(buckets, size, attemptScale(buckets))).toEqual({
      baseline: 25,
      bars: [
        { succeeded: { x: 2.5, width: 20, y: 0, height: 25 }, failed: null },
        { succeeded: { x: 27.5, width: 20, y: 15, height: 10 }, failed: { x: 27.5, width: 20, y: 25, height: 5 } },
        { succeeded: null, failed: null },
        { succeeded: null, failed: { x: 77.5, width: 20, y: 25, height: 5 } },
      ],
    });
  });

  test.each([
    [[], { top: 1, hasFailures: false }],
    [[bucket(41, 41), bucket(3, 3)], { top: 50, hasFailures: false }],
    [[bucket(3, 3), bucket(20, 1)], { top: 20, hasFailures: true }],
  ])("the scale of the buckets %j is %j", (buckets, scale) => {
    expect(attemptScale(buckets)).toEqual(scale);
  });

  test.each([
    ["one failure among many successes", bucket(100_001, 100_000), "failed"],
    ["one success among many failures", bucket(100_001, 1), "succeeded"],
  ] as const)("%s is visible and inside the chart", (_, value, name) => {
    const [bars] = attemptBars([value], size, attemptScale([value])).bars;
    const rectangle = bars?.[name];
    expect(rectangle?.height).toBe(2);
    expect(rectangle?.y).toBeGreaterThanOrEqual(0);
    expect((rectangle?.y ?? 0) + (rectangle?.height ?? 0)).toBeLessThanOrEqual(50);
  });

  test.each([
    [[], 50, []],
    [[bucket(0, 0)], 50, [{ succeeded: null, failed: null }]],
    [[bucket(5, 5)], 50, [{ succeeded: { x: 10, width: 80, y: 0, height: 50 }, failed: null }]],
    [[bucket(5, 0)], 25, [{ succeeded: null, failed: { x: 10, width: 80, y: 25, height: 25 } }]],
  ])("the buckets %j have the line at %i", (buckets, baseline, bars) => {
    expect(attemptBars(buckets, size, attemptScale(buckets))).toMatchObject({ baseline, bars });
  });

  test("a line ends at a bucket without a value, and a single value is a short level line", () => {
    expect(linesThrough([0, 50, null, 100, null, 25], 100, { width: 60, height: 50 })).toEqual([
      "5,50 15,25",
      "32.5,0 37.5,0",
      "52.5,37.5 57.5,37.5",
    ]);
    expect(linesThrough([null, null], 100, size)).toEqual([]);
    expect(linesThrough([], 100, size)).toEqual([]);
  });

  test.each([
    [0, 1],
    [1, 1],
    [1.1, 2],
    [41, 50],
    [500, 500],
    [501, 600],
    [7_400, 8_000],
    [15_000, 20_000],
  ])("the scale of values up to %d ends at %d", (value, top) => {
    expect(scaleTop(value)).toBe(top);
  });

  test.each([
    [1, "100 %"],
    [0.99999, "99.9 %"],
    [0.5, "50 %"],
    [0, "0 %"],
  ])("the share %d is shown as %s: only all is 100", (share, text) => {
    expect(percent(share)).toBe(text);
  });
});
