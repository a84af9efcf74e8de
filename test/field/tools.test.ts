import { send, useService } from "../support/service.ts";
import { toolRequests } from "./tools.ts";

/* Requests of real tools succeed, or get a message that says what to change. */

const service = useService();

test.each(toolRequests)("%s (%s)", async (_tool, _source, { path, headers, ...request }, expected) => {
  const authorization = `Bearer ${service.user().token}`;
  const { status, body } = await send(`${service.baseUrl}/v1${path}`, {
    ...request,
    headers: { authorization, ...headers },
  });
  const { code, message } = body?.error ?? {};
  expect({ status, code, message }).toEqual({ code: undefined, message: undefined, ...expected });
});
