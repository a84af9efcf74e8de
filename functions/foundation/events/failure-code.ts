/** Why a request to a receiver failed. `http_status` is any complete response other than 2xx. */
export const failureCodes = [
  "timeout",
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "address_blocked",
  "invalid_response",
  "http_status",
] as const;
export type FailureCode = (typeof failureCodes)[number];

/** The `detail` of an `address_blocked` because of the port of the URL. */
export const PORT_BLOCKED = "PORT_BLOCKED";

/** The `detail` of a `timeout` in which no connection was established. */
export const NOT_CONNECTED = "NOT_CONNECTED";

/** The `detail` of a `connection_refused` of a host that has IPv6 addresses only, where IPv6 does not work. */
export const NO_IPV4 = "NO_IPV4";
