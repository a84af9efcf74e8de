import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { metrics } from "../../functions/manifest/metrics.ts";

/* Queries of CloudWatch Logs Insights, read well enough to see whether what they ask for is ever logged. */

const root = join(import.meta.dirname, "../..");
const sources = readdirSync(join(root, "functions"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(join(root, "functions", name), "utf8"))
  .join("\n");
const accessLog = readFileSync(join(root, "lib/access-log.ts"), "utf8");

const words =
  /^(filter|fields|stats|sort|limit|by|as|and|or|not|like|in|asc|desc|count|count_distinct|sum|min|max|pct|latest)$/;
/** https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html */
const platformFields = /^(@timestamp|type|record\.(status|errorType|metrics\.\w+))$/;
const metricNames: string[] = Object.values(metrics).map(({ name }) => name);

/** The fields a query reads, without those that it makes up itself (`as …`). */
export function fieldsOf(query: string): string[] {
  const bare = query.replaceAll(/"[^"]*"/g, "");
  const made = new Set([...bare.matchAll(/\bas (\w+)/g)].map(([, name = ""]) => name));
  const names = bare.match(/[@\w.]+/g) ?? [];
  return [...new Set(names.filter((name) => !words.test(name) && !/^\d/.test(name) && !made.has(name)))];
}

/** What a query of the functions' logs, or of the access log, asks for that nobody writes. */
export function unknownIn(query: string, isAccessLog: boolean): string[] {
  const unknown = fieldsOf(query).filter((field) => !isWritten(field, isAccessLog));
  const messages = [...query.matchAll(/\bmessage = "([^"]*)"/g)].map(([, message = ""]) => message);
  return [...unknown, ...messages.filter((message) => !sources.includes(`"${message}"`))];
}

function isWritten(field: string, isAccessLog: boolean): boolean {
  if (platformFields.test(field)) return true;
  if (isAccessLog) return new RegExp(`^  ${field}: "\\$context`, "m").test(accessLog);
  return metricNames.includes(field) || field.split(".").every((part) => new RegExp(`\\b${part}\\b`).test(sources));
}
