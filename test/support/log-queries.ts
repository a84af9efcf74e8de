import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { metrics } from "../../functions/foundation/manifest/metrics.ts";

/* Checks that the fields and messages in queries of CloudWatch Logs Insights are logged somewhere in the sources. */

const root = join(import.meta.dirname, "../..");
const sources = readdirSync(join(root, "functions"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(join(root, "functions", name), "utf8"))
  .join("\n");
const accessLog = readFileSync(join(root, "lib/access-log.ts"), "utf8");

const keywords =
  /^(filter|fields|stats|sort|limit|by|as|and|or|not|like|in|asc|desc|count|count_distinct|sum|min|max|pct|latest)$/;
/** https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html */
const platformFields = /^(@timestamp|@logStream|type|record\.(status|errorType|metrics\.\w+))$/;
const metricNames: string[] = Object.values(metrics).map(({ name }) => name);

/** Returns the fields that a query reads, without those that it defines itself (`as …`). */
function fieldsOf(query: string): string[] {
  const withoutStrings = query.replaceAll(/"[^"]*"/g, "");
  const defined = new Set([...withoutStrings.matchAll(/\bas (\w+)/g)].map(([, name = ""]) => name));
  const names = withoutStrings.match(/[@\w.]+/g) ?? [];
  return [...new Set(names.filter((name) => !keywords.test(name) && !/^\d/.test(name) && !defined.has(name)))];
}

/**
 * Returns the fields and messages of a query that are never logged.
 * @param isAccessLog whether the query reads the access log, or else the logs of the functions
 */
export function notLogged(query: string, isAccessLog: boolean): string[] {
  const fields = fieldsOf(query).filter((field) => !isLogged(field, isAccessLog));
  const messages = [...query.matchAll(/\bmessage = "([^"]*)"/g)].map(([, message = ""]) => message);
  return [...fields, ...messages.filter((message) => !sources.includes(`"${message}"`))];
}

function isLogged(field: string, isAccessLog: boolean): boolean {
  if (platformFields.test(field)) return true;
  if (isAccessLog) return new RegExp(`^  ${field}: "\\$context`, "m").test(accessLog);
  return metricNames.includes(field) || field.split(".").every((part) => new RegExp(`\\b${part}\\b`).test(sources));
}
