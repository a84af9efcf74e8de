/** Why a request to a receiver failed. `http_status` is any complete response other than 2xx. */
export type FailureCode =
  | "timeout"
  | "dns_error"
  | "connection_refused"
  | "connection_reset"
  | "tls_error"
  | "address_blocked"
  | "invalid_response"
  | "http_status";

/** The `detail` of a `timeout` in which no connection was established. */
export const NOT_CONNECTED = "NOT_CONNECTED";
