/** The options of every command. */
export interface Globals {
  baseUrl?: string;
  json?: boolean;
  debug?: boolean;
}
