// biome-ignore-all format: as tsc writes it
// biome-ignore-all lint: as tsc writes it
// biome-ignore-all assist: as tsc writes it
/**
 * @param {Options} options
 * @returns {Delivery}
 * @throws {WebhookVerificationError} Answer 401.
 * @throws {TypeError} The caller is wrong: the body is parsed already, or the secret is none.
 */
export function verifyWebhook({ body, headers, secret, scheme, toleranceSeconds, now, }: Options): Delivery;
/** A delivery that must not be believed. `code` says which check failed; neither code nor message is a secret. */
export class WebhookVerificationError extends Error {
    /** @param {keyof typeof messages} code */
    constructor(code: keyof typeof messages);
    code: "missing_header" | "invalid_timestamp" | "timestamp_too_old" | "timestamp_too_new" | "no_matching_signature" | "invalid_payload";
}
export type EventFields = {
    project_id: string;
    deployment_id: string;
    /**
     * Time of the event, ISO 8601 UTC. Deliveries come out of order.
     */
    timestamp: string;
};
export type Started = {
    event: "deploy.started";
    data: Record<string, unknown>;
};
export type Succeeded = {
    event: "deploy.succeeded";
    data: {
        url: string;
        status: "running";
    } & Record<string, unknown>;
};
export type Failed = {
    event: "deploy.failed";
    data: Record<string, unknown>;
};
export type DeploymentEvent = EventFields & (Started | Succeeded | Failed);
export type Delivery = {
    /**
     * The same however often the delivery comes: what to recognise a repeated one by. It is `webhook-id`;
     * in the scheme "body", which does not sign that header, the SHA-256 of the body in hex.
     */
    id: string;
    /**
     * The parsed body. A signature proves who wrote it; its shape is not looked at.
     */
    payload: DeploymentEvent;
};
export type Options = {
    /**
     * The body as it came, not parsed and printed again.
     */
    body: string | Uint8Array | ArrayBuffer;
    /**
     * `Headers`, or an object or array of names and values, in upper or lower case.
     */
    headers: object;
    /**
     * The webhook's secret, `whsec_` included. Several: any of them may have signed.
     */
    secret: string | string[];
    /**
     * `"standard"`: `webhook-signature`, which covers id, time and body. `"body"`:
     * `X-Service-Signature`, which covers the body alone, so that a copy of a delivery verifies for ever. There is no
     * falling back from the one to the other: whoever replays a delivery could leave the better signature out.
     */
    scheme?: "standard" | "body" | undefined;
    /**
     * How far `webhook-timestamp` may be from now, either way. Default 300.
     */
    toleranceSeconds?: number | undefined;
    now?: Date | undefined;
};
declare namespace messages {
    let missing_header: string;
    let invalid_timestamp: string;
    let timestamp_too_old: string;
    let timestamp_too_new: string;
    let no_matching_signature: string;
    let invalid_payload: string;
}
export {};
