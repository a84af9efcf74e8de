/** The codes of Node for a connection that could not be made, or that closed before the response. */
const CODES = /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET)/;

interface ConnectionError extends Error {
  code: string;
  address?: string;
  port?: number;
  hostname?: string;
}

/**
 * Returns what could not be reached and what to do, as one line. Names the variable `AWS_ENDPOINT_URL…` that has the address.
 * @param env has the addresses of the engines
 * @returns undefined for an error that is not one of a connection
 */
export function unreachable(error: unknown, env = process.env): string | undefined {
  const found = connectionErrorIn(error);
  if (found === undefined) return undefined;
  const { code, address, hostname, port } = found;
  const host = address ?? hostname;
  const settings = Object.entries(env).flatMap(([name, value = ""]) =>
    name.startsWith("AWS_ENDPOINT_URL") && URL.canParse(value) ? [{ name, value, url: new URL(value) }] : [],
  );
  const setting =
    settings.find(({ url }) => url.hostname === host && (port === undefined || portOf(url) === port)) ??
    // A name was resolved to one of its addresses.
    settings.find(({ url }) => !/^[\d.]+$|^\[/.test(url.hostname) && portOf(url) === port);
  if (setting !== undefined) {
    const { name, value } = setting;
    return `Could not reach ${value} (${code}). Start the service at this address, or correct ${name}.`;
  }
  const target = host === undefined ? "AWS" : `${host}${port === undefined ? "" : `:${port}`}`;
  return `Could not reach ${target} (${code}). Check the network, AWS_REGION and AWS_ENDPOINT_URL.`;
}

const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === "https:" ? 443 : 80));

/** Returns the error of the connection: the error, its cause, or one of several addresses of a name. */
function connectionErrorIn(error: unknown): ConnectionError | undefined {
  if (!(error instanceof Error)) return undefined;
  const parts = [...(error instanceof AggregateError ? error.errors : []), error.cause];
  const inner = parts.map(connectionErrorIn).find((part) => part !== undefined);
  const { code } = error as Partial<ConnectionError>;
  const isOwn = typeof code === "string" && CODES.test(code);
  return inner ?? (isOwn ? (error as ConnectionError) : undefined);
}
