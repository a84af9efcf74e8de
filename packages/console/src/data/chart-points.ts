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
  /** The line from which successes go up and failures go down, so that they differ without their colors. */
  baseline: number;
  /** The most successes and the most failures of a bucket. */
  max: { succeeded: number; failed: number };
}

/** Share of a bucket's width that its bar leaves empty. */
const GAP = 0.2;
/** The least height of a bar: one failure among thousands of successes stays visible. */
const MIN_HEIGHT = 2;

const failedIn = ({ attempts, succeeded }: AttemptBucket) => attempts - succeeded;

/** The most successes and the most failures of a bucket. */
export const mostOf = (buckets: readonly AttemptBucket[]): AttemptBars["max"] => ({
  succeeded: Math.max(0, ...buckets.map(({ succeeded }) => succeeded)),
  failed: Math.max(0, ...buckets.map(failedIn)),
});

/**
 * Returns the bars of attempts over time: successes above a line, failures below it, on the same scale.
 * @param max the scale; charts that are compared share one
 */
export function attemptBars(
  buckets: readonly AttemptBucket[],
  { width, height }: Size,
  max = mostOf(buckets),
): AttemptBars {
  const total = max.succeeded + max.failed;
  // Room for the least height below the line, and above it.
  const room = (most: number) => (most === 0 ? 0 : MIN_HEIGHT);
  const wanted = total === 0 ? height : (height * max.succeeded) / total;
  const baseline = Math.min(Math.max(wanted, room(max.succeeded)), height - room(max.failed));
  const step = width / buckets.length;
  const bar = (index: number, count: number, most: number, space: number, isAbove: boolean): Rectangle | null => {
    if (count === 0) return null;
    const barHeight = Math.min(space, Math.max(MIN_HEIGHT, (space * count) / most));
    return {
      x: round(step * (index + GAP / 2)),
      width: round(step * (1 - GAP)),
      y: round(isAbove ? baseline - barHeight : baseline),
      height: round(barHeight),
    };
  };
  const bars = buckets.map((bucket, index) => ({
    succeeded: bar(index, bucket.succeeded, max.succeeded, baseline, true),
    failed: bar(index, failedIn(bucket), max.failed, height - baseline, false),
  }));
  return { bars, baseline: round(baseline), max };
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

/** Returns the least of 1, 2, 5, 10, 20, 50, … that is not below a value: the top of a scale. At least 1. */
export function scaleTop(value: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((factor) => factor * magnitude).find((top) => top >= value) ?? value;
}

const round = (value: number): number => Math.round(value * 100) / 100;
