import * as apigateway from "aws-cdk-lib/aws-apigateway";
import {
  API_ADDRESS,
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
} from "../functions/foundation/manifest/gateway-responses.ts";
import { corsHeaders, errorHeaders } from "./fixed-headers.ts";
import { constructId } from "./names.ts";
import type { Stage } from "./stage.ts";

/** Gives API Gateway's own errors the format of our errors: one per row of functions/foundation/manifest/gateway-responses.ts. */
export function addGatewayResponses(api: apigateway.RestApi, stage: Stage, address: string): void {
  for (const [type, row] of Object.entries<GatewayResponseRow>(gatewayResponses)) {
    api.addGatewayResponse(constructId(type.toLowerCase().replaceAll("_", "-")), {
      type: apigateway.ResponseType.of(type),
      ...(row.status && { statusCode: String(row.status) }),
      responseHeaders: withAddress(errorHeaders(row, corsHeaders(stage)), address),
      templates: { "application/json": gatewayResponseTemplate(row) },
    });
  }
}

const withAddress = (headers: Record<string, string>, address: string): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace(API_ADDRESS, address)]));
