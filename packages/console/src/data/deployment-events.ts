import type { EventName } from "../../../client/src/client.ts";
import { ApiError, NetworkError } from "../../../client/src/errors.ts";
import { fetchWithoutCookies } from "./connection.ts";

/**
 * Puts a deployment event on the queue of a local run. AWS has no such address.
 * @throws ApiError or NetworkError
 */
export async function sendDeploymentEvent(project_id: string, event: EventName, data: object): Promise<void> {
  const response = await fetchWithoutCookies("events", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Console": "1" },
    body: JSON.stringify({ project_id, event, data }),
  });
  if (response.ok) return;
  const { status, headers } = response;
  const error = ApiError.of({ status, headers, text: await response.text() });
  throw error ?? new NetworkError(`The service returned an unexpected response (${status}).`);
}
