import { parse, YAMLParseError } from "yaml";
import * as z from "zod";
import { webhookEventNames } from "../../../client/src/values.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { matchKey } from "./match-key.ts";

const webhook = z.strictObject({
  url: z.string().refine(URL.canParse, "must be an absolute URL"),
  /** Absent: the name of an existing webhook is left as it is. Null removes it. */
  name: z.string().min(1).max(100).nullable().optional(),
  events: z
    .array(z.enum(webhookEventNames, `must be one of ${webhookEventNames.join(", ")}`))
    .min(1, "must name at least one event"),
  /** Absent: the filter of an existing webhook is left as it is. Null removes it. */
  filter: z.record(z.string(), z.array(z.string())).nullable().optional(),
  /** Absent: a new webhook is enabled, and the state of an existing one is left as it is. */
  enabled: z.boolean("must be true or false").optional(),
});

const webhooksFile = z.strictObject({
  /** Id or name. */
  project: z.string().min(1, "must not be empty").optional(),
  webhooks: z.array(webhook),
});

export type DeclaredWebhook = z.output<typeof webhook>;
export type WebhooksFile = z.output<typeof webhooksFile>;

/**
 * Reads the declared webhooks of a project.
 * @param text YAML 1.2, of which JSON is a part
 * @throws CommandError when it is not valid, has a field that is not known, or has a URL twice
 */
export function parseWebhooksFile(text: string): WebhooksFile {
  const { success, data, error } = webhooksFile.safeParse(readYaml(text), { error: messageOf });
  if (!success) {
    const lines = error.issues.map(({ path, message }) => `  ${path.join(".") || "the file"}: ${message}`);
    throw usageError(`The file of webhooks is not valid.\n${lines.join("\n")}`, "Show its format: svc apply --help");
  }
  const keys = data.webhooks.map(({ url }) => matchKey(url));
  const repeated = data.webhooks.find(({ url }, index) => keys.indexOf(matchKey(url)) !== index);
  if (repeated)
    throw usageError(`The file has the URL ${repeated.url} twice.`, "Declare all of its events in one entry.");
  return data;
}

/** The words for a person; undefined = those of the schema. */
function messageOf({ code, expected, keys }: z.core.$ZodRawIssue): string | undefined {
  if (code === "unrecognized_keys") return `has no field ${Object.values(keys ?? {}).join(", ")}`;
  return code === "invalid_type" ? `must be ${kinds[String(expected)] ?? expected}` : undefined;
}

const kinds: Partial<Record<string, string>> = { array: "a list", object: "a map of fields", string: "a text" };

function readYaml(text: string): unknown {
  try {
    return parse(text, { logLevel: "error" });
  } catch (error) {
    // Only the first line: the others quote the file.
    const reason = error instanceof YAMLParseError ? error.message.split("\n")[0]?.replace(/:$/, "") : String(error);
    throw usageError(`The file of webhooks is not valid YAML: ${reason}.`);
  }
}
