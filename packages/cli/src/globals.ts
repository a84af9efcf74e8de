/** The options that every command takes. */
export interface Globals {
  baseUrl?: string;
  json?: boolean;
  debug?: boolean;
}
