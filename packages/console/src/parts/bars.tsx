import type { ComponentChildren } from "preact";
import type { WebhookStats } from "../../../client/src/client.ts";
import { type AttemptBars, attemptBars, type Size } from "../data/chart-points.ts";

export type Buckets = WebhookStats["buckets"];

const SMALL = { width: 120, height: 26 };

export const timeOf = (instant: string) =>
  new Date(instant).toLocaleString(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });

const counted = (count: number, one: string) => `${count.toLocaleString()} ${one}${count === 1 ? "" : "s"}`;

/** Returns a chart of attempts as text. */
export const summaryOf = ({ attempts, succeeded }: Pick<WebhookStats, "attempts" | "succeeded">) =>
  attempts === 0 ? "no attempts" : `${counted(attempts, "attempt")}, ${attempts - succeeded} failed`;

/** Attempts of the last hours in a line of a list: successes go up, failures go down. @param top the scale of all lines */
export function Sparkline({ stats, top }: { stats: WebhookStats | undefined; top: AttemptBars["max"] }) {
  if (stats === undefined) return null;
  const text = summaryOf(stats);
  if (stats.attempts === 0) return <span class="fine">{text}</span>;
  return (
    <span class="sparkline">
      <Bars buckets={stats.buckets} size={SMALL} top={top} label={`Last ${stats.window}: ${text}`} />
      <span class="fine" aria-hidden="true">
        {stats.attempts === stats.succeeded
          ? stats.attempts.toLocaleString()
          : `${stats.attempts - stats.succeeded} of ${stats.attempts} failed`}
      </span>
    </span>
  );
}

interface BarsProps {
  buckets: Buckets;
  size: Size;
  /** The scale; absent = that of these buckets. */
  top?: AttemptBars["max"];
  label: string;
  /** Drawn behind the bars. */
  children?: ComponentChildren;
}

export function Bars({ buckets, size, top, label, children }: BarsProps) {
  const { bars, baseline } = attemptBars(buckets, size, top);
  return (
    <svg
      class="bars"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size.width} ${size.height}`}
      preserveAspectRatio="none"
    >
      {children}
      {bars.map(({ succeeded, failed }, index) => {
        const bucket = buckets[index];
        return (
          <g key={bucket?.start}>
            {bucket && <title>{`${timeOf(bucket.start)}: ${summaryOf(bucket)}`}</title>}
            {succeeded && <rect class="succeeded" {...succeeded} />}
            {failed && <rect class="failed" {...failed} />}
          </g>
        );
      })}
      <line class="baseline" x1="0" x2={size.width} y1={baseline} y2={baseline} />
    </svg>
  );
}
