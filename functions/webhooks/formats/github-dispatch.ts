import type { FormattedEvent } from "./message.ts";

/** Of `event_type`, and of `client_payload` as JSON, which GitHub limits to 64 KB. */
const MAX_TYPE_CHARACTERS = 100;
const MAX_PAYLOAD_BYTES = 60_000;

/**
 * A `repository_dispatch` event of GitHub, which starts a workflow. The request needs an `Authorization` header.
 * https://docs.github.com/en/rest/repos/repos#create-a-repository-dispatch-event
 */
export function repositoryDispatch({ event, project_id, deployment_id, timestamp, data }: FormattedEvent): object {
  const fields = { event, project_id, deployment_id, timestamp };
  const bytes = Buffer.byteLength(JSON.stringify({ ...fields, data }));
  const isTooLarge = bytes > MAX_PAYLOAD_BYTES;
  const note = `data has ${bytes} bytes, more than GitHub accepts: read the delivery`;
  return {
    event_type: event.slice(0, MAX_TYPE_CHARACTERS),
    client_payload: { ...fields, data: isTooLarge ? { truncated: true, note } : data },
  };
}
