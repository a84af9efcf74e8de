import { parse, YAMLParseError } from "yaml";
import * as z from "zod";
import { signatureSchemes, webhookEventNames, webhookFormats } from "../../../client/src/values.ts";
import { isSubscription } from "../commands/delivery-options.ts";
import { readText } from "../commands/webhook-secrets.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { matchKey } from "./match-key.ts";

/** A file in a repository is no place for a credential. */
const headerSource = z.union(
  [z.strictObject({ env: z.string().min(1) }), z.strictObject({ file: z.string().min(1) })],
  "must be {env: NAME} or {file: path}, because the file is read by others: where the value is, not the value",
);

function hasPassword(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username !== "" || password !== "";
}

const formats = ["standard", ...webhookFormats] as const;

const webhook = z.strictObject({
  url: z
    .string()
    .refine(URL.canParse, "must be an absolute URL")
    .refine((text) => !hasPassword(text), "must have no user name and password: declare the header Authorization"),
  /** Absent: the name of an existing webhook is left as it is. Null removes it. */
  name: z.string().min(1).max(100).nullable().optional(),
  events: z
    .array(z.string().refine(isSubscription, `must be one of ${webhookEventNames.join(", ")}, or * or deploy.*`))
    .min(1, "must name at least one event"),
  /** Absent: the filter of an existing webhook is left as it is. Null removes it. */
  filter: z.record(z.string(), z.array(z.string())).nullable().optional(),
  /** Absent: a new webhook is enabled, and the state of an existing one is left as it is. */
  enabled: z.boolean("must be true or false").optional(),
  /** Absent, of this and the following: those of an existing webhook are left as they are. */
  format: z.enum(formats, `must be one of ${formats.join(", ")}`).optional(),
  /** By name, where its value is. Null removes all. */
  headers: z
    .record(z.string(), headerSource)
    .refine((headers) => Object.keys(headers).length > 0, "must have a header, or be null")
    .nullable()
    .optional(),
  signatures: z.array(z.enum(signatureSchemes)).min(1, "must name at least one").optional(),
  delivery: z.enum(["every", "latest"], "must be every or latest").optional(),
  settle_seconds: z.int().min(0).max(60).optional(),
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

/** Reads the values of headers. @throws CommandError that names the variable or the file without a value */
export function headerValues(headers: NonNullable<DeclaredWebhook["headers"]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, source]) => {
      const value = ("env" in source ? (process.env[source.env] ?? "") : readText(source.file)).trim();
      const place = "env" in source ? `variable ${source.env}` : `file ${source.file}`;
      if (value === "") throw usageError(`The ${place} has no value for the header ${name}. Nothing was changed.`);
      return [name, value];
    }),
  );
}
