import type { Webhook, WebhookInList, WebhookRef, WebhookStats } from "../../../client/src/client.ts";
import { deliveryErrorMeanings } from "../../../client/src/values.ts";
import { healthHref, type Query, withQuery } from "../data/route.ts";
import { percent } from "../data/share.ts";
import { duration } from "../data/time.ts";
import { StatsCharts } from "../parts/chart.tsx";
import { ErrorMessage, Skeleton, Table, Time } from "../parts/components.tsx";
import { Age, type Health, HealthBadge } from "../parts/health.tsx";
import { useLoaded } from "../parts/use-loaded.ts";

/** Each request of statistics reads up to 1,000 deliveries. */
const STATS_INTERVAL_MS = 60_000;

interface HealthViewProps {
  webhook: Webhook;
  webhookRef: WebhookRef;
  query: Query;
}

/** A webhook's health: its state and its statistics. */
export function HealthView({ webhook, webhookRef, query }: HealthViewProps) {
  const { projectId, webhookId } = webhookRef;
  const window = query.window === "7d" ? "7d" : "24h";
  const href = healthHref(projectId, webhookId);
  const { data: stats, error } = useLoaded(
    `${webhookId} ${window}`,
    (client) => client.getWebhookStats(webhookRef, { window }),
    STATS_INTERVAL_MS,
  );
  return (
    <section class="list" aria-label="Health">
      <HealthFacts health={webhook.health} webhook={webhook} />
      <div class="head">
        <h2>Attempts and response times</h2>
        <nav class="switch" aria-label="Period">
          {(["24h", "7d"] as const).map((each) => (
            <a
              key={each}
              href={withQuery(href, { ...query, window: each === "24h" ? undefined : each })}
              aria-current={each === window ? "page" : undefined}
            >
              {windowNames[each]}
            </a>
          ))}
        </nav>
      </div>
      <ErrorMessage error={error} />
      {stats === undefined && !error && <Skeleton rows={5} />}
      {stats && <Statistics stats={stats} />}
    </section>
  );
}

const windowNames = { "24h": "24 hours", "7d": "7 days" };

function HealthFacts({ health, webhook }: { health: Health; webhook: WebhookInList }) {
  const { since, last_success_at, last_error, next_probe_at } = health;
  return (
    <dl class="ids">
      <dt>State</dt>
      <dd>
        <HealthBadge webhook={webhook} />
        {since !== null && (
          <>
            {" for "}
            <Age of={since} />
          </>
        )}
      </dd>
      <dt>Last success</dt>
      <dd>{last_success_at === null ? "none among the newest deliveries" : <Time at={last_success_at} />}</dd>
      <dt>Last error</dt>
      <dd>
        {last_error === null ? (
          "none since the last success"
        ) : (
          <>
            <code>{last_error.error_code}</code> {last_error.hint}
          </>
        )}
      </dd>
      {next_probe_at !== null && (
        <>
          <dt>Next probe</dt>
          <dd>
            <Time at={next_probe_at} />
          </dd>
        </>
      )}
    </dl>
  );
}

function coverageOf({ complete, deliveries_read, covered_since, window }: WebhookStats): string {
  const count = deliveries_read.toLocaleString();
  if (complete && deliveries_read === 0) return `No deliveries in the last ${windowNames[window]}.`;
  if (complete && deliveries_read === 1) return `Covers the one delivery of the last ${windowNames[window]}.`;
  if (complete) return `Covers all ${count} deliveries of the last ${windowNames[window]}.`;
  return `Covers only the newest ${count} deliveries, back to ${new Date(covered_since).toLocaleString()}.`;
}

function Statistics({ stats }: { stats: WebhookStats }) {
  const { attempts, succeeded, success_rate, response_ms, by_event, by_error } = stats;
  const figures = {
    Attempts: attempts.toLocaleString(),
    Succeeded: success_rate === null ? "none" : percent(success_rate),
    Failed: (attempts - succeeded).toLocaleString(),
    "Median response": response_ms === null ? "none" : duration(response_ms.p50),
    "95 % within": response_ms === null ? "none" : duration(response_ms.p95),
  };
  return (
    <>
      <p class="fine">{coverageOf(stats)} Attempts of test deliveries are not counted.</p>
      <dl class="figures">
        {Object.entries(figures).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <StatsCharts stats={stats} />
      {attempts > 0 && (
        <div class="columns">
          <Table caption={<caption>By event</caption>} columns={["Event", "Attempts", "Succeeded"]}>
            {by_event.map(({ event, attempts, succeeded }) => (
              <tr key={event}>
                <td>
                  <code>{event}</code>
                </td>
                <td data-label="attempts">{attempts.toLocaleString()}</td>
                <td data-label="succeeded">{percent(succeeded / attempts)}</td>
              </tr>
            ))}
          </Table>
          {by_error.length > 0 && (
            <Table caption={<caption>By error</caption>} columns={["Error", "Attempts"]}>
              {by_error.map(({ error_code, attempts }) => (
                <tr key={error_code}>
                  <td class="breaks">
                    <code>{error_code}</code> <span class="fine">{deliveryErrorMeanings[error_code]}</span>
                  </td>
                  <td data-label="attempts">{attempts.toLocaleString()}</td>
                </tr>
              ))}
            </Table>
          )}
        </div>
      )}
    </>
  );
}
