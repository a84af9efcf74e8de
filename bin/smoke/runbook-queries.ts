/* The log queries of docs/runbook.md. */

export interface RunbookQuery {
  /** Beginning of the logical id of the log group. */
  logs: string;
  minutes: number;
  query: string;
}

/** Returns the queries of all `ask` commands, each once. A loop `for logs in A B` is one query per name. */
export function runbookQueries(markdown: string): RunbookQuery[] {
  const found = new Map<string, RunbookQuery>();
  let loop: string[] = [];
  for (const line of markdown.split("\n")) {
    loop = /^ *for logs in ([\w ]+); do$/.exec(line)?.[1]?.split(" ") ?? loop;
    for (const [, logs = "", minutes, text = ""] of line.matchAll(/\bask (\$?\w+) (\d+) '([^']+)'/g)) {
      // A table escapes the pipes of its cells.
      const query = text.replaceAll("\\|", "|");
      for (const name of logs === "$logs" ? loop : [logs]) {
        found.set(`${name} ${query}`, { logs: name, minutes: Number(minutes), query });
      }
    }
  }
  return [...found.values()];
}
