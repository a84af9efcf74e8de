import type { APIGatewayProxyEvent } from "aws-lambda";
import { settings } from "../foundation/platform/env.ts";

/** Returns the address of the API, without a trailing slash. No header of a request can change it. */
export const apiUrlOf = ({ requestContext }: APIGatewayProxyEvent): string =>
  settings.apiUrl() ?? `http://${requestContext.domainName}`;
