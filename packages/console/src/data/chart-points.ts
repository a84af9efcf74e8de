/* The geometry of charts. All results are in the units of an SVG's view box, whose origin is at the top left. */

/** A bucket of attempts. */
interface AttemptBucket {
  attempts: number;
  succeeded: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Rectangle extends Size {
  x: number;
  y: number;
}

/** The two bars of a bucket. Null = none of these attempts. */
export interface BucketBars {
  succeeded: Rectangle | null;
  failed: Rectangle | null;
}

export interface AttemptBars {
  bars: BucketBars[];
  /** The line from which successes go up and failures go down, so that they differ without their colors: zero. */
  baseline: number;
}

/** What charts have in common that are compared. */
export interface AttemptScale {
  /** The value at the top, and at the bottom if there is a lower half. */
  top: number;
  /** Whether there is a lower half. */
  hasFailures: boolean;
}

/** Share of a bucket's width that its bar leaves empty. */
const GAP = 0.2;
/** The least height of a bar: one failure among thousands of successes stays visible. */
const MIN_HEIGHT = 2;

const failedIn = ({ attempts, succeeded }: AttemptBucket) => attempts - succeeded;

/** Returns the scale on which every bucket has room. */
export function attemptScale(buckets: readonly AttemptBucket[]): AttemptScale {
  const most = buckets.map((bucket) => Math.max(bucket.succeeded, failedIn(bucket)));
  return { top: scaleTop(Math.max(1, ...most)), hasFailures: buckets.some((bucket) => failedIn(bucket) > 0) };
}

/** Returns the bars of attempts over time: successes above a line, failures below it. */
export function attemptBars(
  buckets: readonly AttemptBucket[],
  { width, height }: Size,
  { top, hasFailures }: AttemptScale,
): AttemptBars {
  const baseline = hasFailures ? height / 2 : height;
  const step = width / buckets.length;
  const bar = (index: number, count: number, isAbove: boolean): Rectangle | null => {
    if (count === 0) return null;
    const barHeight = Math.max(MIN_HEIGHT, (baseline * count) / top);
    return {
      x: round(step * (index + GAP / 2)),
      width: round(step * (1 - GAP)),
      y: round(isAbove ? baseline - barHeight : baseline),
      height: round(barHeight),
    };
  };
  const bars = buckets.map((bucket, index) => ({
    succeeded: bar(index, bucket.succeeded, true),
    failed: bar(index, failedIn(bucket), false),
  }));
  return { bars, baseline };
}

/**
 * Returns the lines through values over time, each as the `points` of an SVG polyline. A bucket without a value ends a line.
 * A value between two such buckets becomes a short level line.
 * @param max the value at the top: none is above it
 */
export function linesThrough(values: readonly (number | null)[], max: number, { width, height }: Size): string[] {
  const step = width / values.length;
  const lines: [x: number, y: number][][] = [];
  let isOpen = false;
  for (const [index, value] of values.entries()) {
    if (value !== null) {
      if (!isOpen) lines.push([]);
      lines.at(-1)?.push([step * (index + 0.5), height - (height * value) / max]);
    }
    isOpen = value !== null;
  }
  return lines.map((points) => {
    const [first] = points;
    const isAlone = first !== undefined && points.length === 1;
    const shown = isAlone ? [-step / 4, step / 4].map((shift) => [first[0] + shift, first[1]] as const) : points;
    return shown.map(([x, y]) => `${round(x)},${round(y)}`).join(" ");
  });
}

/** Returns the least of 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, … that is not below a value: the top of a scale. At least 1. */
export function scaleTop(value: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * magnitude).find((top) => top >= value) ?? value;
}

const round = (value: number): number => Math.round(value * 100) / 100;
