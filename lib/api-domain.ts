import { CfnOutput } from "aws-cdk-lib";
import * as apigateway from "aws-cdk-lib/aws-apigateway";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import * as route53 from "aws-cdk-lib/aws-route53";
import { ApiGatewayDomain } from "aws-cdk-lib/aws-route53-targets";
import { Construct } from "constructs";
import type { Stage } from "./stage.ts";

/**
 * TLS 1.2 or later, with forward secrecy, for the API and its domain: the default of an API is TLS 1.0. Requests must name
 * the host to which they connect.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-security-policies.html
 */
export const tls = {
  securityPolicy: apigateway.SecurityPolicy.TLS13_1_2_PFS_PQ_2025_09,
  endpointAccessMode: apigateway.EndpointAccessMode.STRICT,
};

/**
 * Gives the API a custom domain name. Without a hosted zone the stack creates no DNS records: the operator points the
 * name to the output ApiDomainTarget.
 */
export function addApiDomain(scope: Construct, api: apigateway.RestApi, domain: NonNullable<Stage["domain"]>): void {
  const folder = new Construct(scope, "Domain");
  const name = new apigateway.DomainName(folder, "Name", {
    domainName: domain.name,
    certificate: Certificate.fromCertificateArn(folder, "Certificate", domain.certificateArn),
    endpointType: apigateway.EndpointType.REGIONAL,
    ...tls,
  });
  name.addBasePathMapping(api, { stage: api.deploymentStage });
  if (domain.hostedZone) {
    const { id: hostedZoneId, name: zoneName } = domain.hostedZone;
    const zone = route53.HostedZone.fromHostedZoneAttributes(folder, "Zone", { hostedZoneId, zoneName });
    const target = route53.RecordTarget.fromAlias(new ApiGatewayDomain(name));
    // The trailing dot marks the name as complete. Without it CDK appends the name of the zone.
    // No AAAA record: a regional domain answers on IPv4 only, unless its address type is dualstack.
    new route53.ARecord(folder, "IPv4", { zone, target, recordName: `${domain.name}.` });
  } else {
    new CfnOutput(api.stack, "ApiDomainTarget", { value: name.domainNameAliasDomainName });
  }
}
