/** Why a request to a receiver failed. A closed set; `http_status` means any complete answer other than 2xx. */
export type FailureCode =
  | "timeout"
  | "dns_error"
  | "connection_refused"
  | "connection_reset"
  | "tls_error"
  | "address_blocked"
  | "invalid_response"
  | "http_status";
