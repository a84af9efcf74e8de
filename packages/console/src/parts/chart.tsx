import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { WebhookStats } from "../../../client/src/client.ts";
import { attemptScale, linesThrough, scaleTop } from "../data/chart-points.ts";
import { duration } from "../data/time.ts";
import { Bars, type Buckets, summaryOf, timeOf } from "./bars.tsx";
import { Table } from "./components.tsx";

const LARGE = { width: 720, height: 120 };

/** Attempts and, unless nothing has responded, response times of a webhook over time, with a table of the same values. */
export function StatsCharts({ stats }: { stats: WebhookStats }) {
  const id = useId();
  const { buckets, since, response_ms } = stats;
  const slowestMs = scaleTop(Math.max(1, ...buckets.map(({ p95_ms }) => p95_ms ?? 0)));
  const minutes = stats.bucket_seconds / 60;
  const period = minutes < 60 ? `${minutes} min` : `${minutes / 60} h`;
  const scale = attemptScale(buckets);
  const quarters = [0, 1, 2, 3].map((quarter) => buckets[Math.floor((quarter * buckets.length) / 4)]?.start ?? since);
  const axis = (
    <p class="axis fine" aria-hidden="true">
      {quarters.map((start) => (
        <span key={start}>{timeOf(start)}</span>
      ))}
      <span>now</span>
    </p>
  );
  return (
    <div class="charts">
      <figure aria-labelledby={`${id}-attempts`}>
        <figcaption id={`${id}-attempts`}>
          Attempts per {period}: <span class="key good">▲ succeeded</span> <span class="key bad">▼ failed</span>
        </figcaption>
        <Plot labels={[scale.top, 0, ...(scale.hasFailures ? [scale.top] : [])]}>
          <Bars buckets={buckets} size={LARGE} scale={scale} label={`Attempts per ${period}: ${summaryOf(stats)}`}>
            <Grid />
          </Bars>
        </Plot>
        {axis}
      </figure>
      {response_ms && (
        <figure aria-labelledby={`${id}-times`}>
          <figcaption id={`${id}-times`}>
            Response time: <span class="key">━ median</span> <span class="key">┅ 95 % are faster</span>
          </figcaption>
          <Plot labels={[duration(slowestMs), 0]}>
            <svg
              class="lines"
              role="img"
              aria-label={`Response time per ${period}: median ${duration(response_ms.p50)}, 95 % within ${duration(response_ms.p95)}`}
              viewBox={`0 0 ${LARGE.width} ${LARGE.height}`}
              preserveAspectRatio="none"
            >
              <Grid />
              {(["p95_ms", "p50_ms"] as const).map((name) =>
                linesThrough(
                  buckets.map((bucket) => bucket[name]),
                  slowestMs,
                  LARGE,
                ).map((points) => <polyline key={name + points} class={name} points={points} />),
              )}
            </svg>
          </Plot>
          {axis}
        </figure>
      )}
      <details>
        <summary>Show as table</summary>
        <StatsTable buckets={buckets} />
      </details>
    </div>
  );
}

interface PlotProps {
  /** The values of the vertical axis, from its top to its bottom. */
  labels: (string | number)[];
  children: ComponentChildren;
}

const Plot = ({ labels, children }: PlotProps) => (
  <div class="plot">
    {children}
    <p class="scale fine" aria-hidden="true">
      {labels.map((label, index) => (
        <span key={index}>{label}</span>
      ))}
    </p>
  </div>
);

/** Lines at each quarter of the time and at half of the height. */
const Grid = () => <path class="grid" d="M0 0V120M180 0V120M360 0V120M540 0V120M0 60H720" />;

function StatsTable({ buckets }: { buckets: Buckets }) {
  const rows = buckets.filter(({ attempts }) => attempts > 0);
  if (rows.length === 0) return <p class="fine">No attempts.</p>;
  return (
    <>
      <Table
        caption={<caption class="visually-hidden">Attempts and response times</caption>}
        columns={["From", "Attempts", "Failed", "Median", "95 % within"]}
      >
        {rows.map(({ start, attempts, succeeded, p50_ms, p95_ms }) => (
          <tr key={start}>
            <td>
              <time dateTime={start}>{timeOf(start)}</time>
            </td>
            <td data-label="attempts">{attempts}</td>
            <td data-label="failed">{attempts - succeeded}</td>
            <td data-label="median">{p50_ms === null ? "none" : duration(p50_ms)}</td>
            <td data-label="95 %">{p95_ms === null ? "none" : duration(p95_ms)}</td>
          </tr>
        ))}
      </Table>
      <p class="fine">Periods without attempts are left out.</p>
    </>
  );
}
