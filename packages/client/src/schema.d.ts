// Made by npm run openapi.
// biome-ignore-all lint: nobody writes it.
export interface paths {
  "/v1/api-keys": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List your API keys
     * @description Oldest first.
     */
    get: operations["listApiKeys"];
    put?: never;
    /**
     * Create an API key
     * @description The answer is the only one that ever shows `key`. A user can have 100 keys. Takes a JWT only.
     */
    post: operations["createApiKey"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/api-keys/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the API key. */
        id: components["parameters"]["id"];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Delete an API key
     * @description It is refused from the next request on. A key may delete itself.
     */
    delete: operations["deleteApiKey"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List your projects
     * @description Oldest membership first, with what you may do in each.
     */
    get: operations["listProjects"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
      };
      cookie?: never;
    };
    /**
     * List the webhooks of a project
     * @description Oldest first, without their secrets. For members of the project.
     */
    get: operations["listWebhooks"];
    put?: never;
    /**
     * Create a webhook
     * @description The answer shows the signing secret, this once. A project can have 20 webhooks. For admins of the project.
     */
    post: operations["createWebhook"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    /**
     * Show a webhook
     * @description For members of the project.
     */
    get: operations["getWebhook"];
    put?: never;
    post?: never;
    /**
     * Delete a webhook
     * @description Its pending deliveries are cancelled, and its log can no longer be seen. For admins of the project.
     */
    delete: operations["deleteWebhook"];
    options?: never;
    head?: never;
    /**
     * Change, disable or enable a webhook
     * @description What is not given stays as it is. Events of a disabled webhook are kept as `held`; enabling sends none of them by itself, `recoverDeliveries` does. For admins of the project.
     */
    patch: operations["updateWebhook"];
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}/rotate-secret": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Replace the signing secret
     * @description The answer shows the new secret, this once. During the overlap every delivery is signed with the old one too, so that receivers can follow in their own time. Three old secrets at most stay valid. For admins of the project.
     */
    post: operations["rotateWebhookSecret"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}/test": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send a sample event
     * @description One attempt, now, whatever the webhook subscribes to and even while it is disabled. For admins of the project.
     */
    post: operations["sendTestDelivery"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    /**
     * List the deliveries of a webhook
     * @description Newest first, by the time of the event. While more follow, the header `Link` leads to the next page. With a status, a page may hold fewer than `limit`, none even, although more follow: go by the header. For members of the project.
     */
    get: operations["listDeliveries"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
        /** @description Id of the delivery. */
        delivery_id: components["parameters"]["delivery_id"];
      };
      cookie?: never;
    };
    /**
     * Show a delivery
     * @description With its payload, and with what came back at each attempt. For members of the project.
     */
    get: operations["getDelivery"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
        /** @description Id of the delivery. */
        delivery_id: components["parameters"]["delivery_id"];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send a delivery once more
     * @description Whatever became of it, under the same id, on a disabled webhook too. Should that fail, the schedule starts anew. A delivery with 50 attempts or more is not sent again. For admins of the project.
     */
    post: operations["redeliver"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/projects/{project_id}/webhooks/{webhook_id}/recover": {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send what failed or was held once more
     * @description Deliveries of events since a time, oldest first, under the same ids; 10,000 a call. The same call continues one that reached its bound. A disabled webhook has to be enabled first. For admins of the project.
     */
    post: operations["recoverDeliveries"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface webhooks {
  "deploy.started": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * deploy.started: a build has started
     * @description Sent to every webhook that subscribes to it, signed, at least once: the same `X-Service-Delivery` is the same event. Verify
     *     a signature over the body as it came, before it is parsed, and answer 2xx within 15 seconds. Anything else is tried again for
     *     27 hours.
     */
    post: operations["onDeployStarted"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "deploy.succeeded": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * deploy.succeeded: the deployment is live and healthy
     * @description Sent to every webhook that subscribes to it, signed, at least once: the same `X-Service-Delivery` is the same event. Verify
     *     a signature over the body as it came, before it is parsed, and answer 2xx within 15 seconds. Anything else is tried again for
     *     27 hours.
     */
    post: operations["onDeploySucceeded"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "deploy.failed": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * deploy.failed: the build or a health check failed
     * @description Sent to every webhook that subscribes to it, signed, at least once: the same `X-Service-Delivery` is the same event. Verify
     *     a signature over the body as it came, before it is parsed, and answer 2xx within 15 seconds. Anything else is tried again for
     *     27 hours.
     */
    post: operations["onDeployFailed"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface components {
  schemas: {
    CreatedApiKey: {
      /**
       * Format: uuid
       * @description Id of the key, for deleting it.
       */
      id: string;
      /** @description Display name of the key. */
      name: string;
      /** @description The first 12 characters of the key, to recognize it. */
      key_prefix: string;
      /**
       * Format: date-time
       * @description Time of creation.
       */
      created_at: string;
      /** @description The API key. Returned only once: the service stores only its hash. */
      key: string;
    };
    ApiKey: {
      /**
       * Format: uuid
       * @description Id of the key, for deleting it.
       */
      id: string;
      /** @description Display name of the key. */
      name: string;
      /** @description The first 12 characters of the key, to recognize it. */
      key_prefix: string;
      /**
       * Format: date-time
       * @description Time of creation.
       */
      created_at: string;
      /**
       * Format: date-time
       * @description Time of the last use, accurate to a minute; null = never used.
       */
      last_used_at: string | null;
    };
    Project: {
      /**
       * Format: uuid
       * @description Id of the project, as used in paths.
       */
      id: string;
      /** @description Name of the project on the platform. */
      name: string;
      /**
       * @description Role of the caller in the project.
       *
       *     - `admin`: may read and change
       *     - `viewer`: may read
       * @enum {string}
       */
      role: "admin" | "viewer";
      /**
       * Format: date-time
       * @description Time at which the caller became a member.
       */
      created_at: string;
    };
    CreatedWebhook: {
      /**
       * Format: uuid
       * @description Id of the webhook, as used in paths.
       */
      id: string;
      /**
       * Format: uuid
       * @description Id of the project whose events are sent.
       */
      project_id: string;
      /** @description URL that events are sent to, as a POST request. */
      url: string;
      /** @description The events that are sent. */
      events: components["schemas"]["EventName"][];
      /**
       * Format: date-time
       * @description Time of creation.
       */
      created_at: string;
      /** @description Secret that signs every delivery. Returned only once. */
      secret: string;
    };
    WebhookInList: {
      /**
       * Format: uuid
       * @description Id of the webhook, as used in paths.
       */
      id: string;
      /**
       * Format: uuid
       * @description Id of the project whose events are sent.
       */
      project_id: string;
      /** @description URL that events are sent to, as a POST request. */
      url: string;
      /** @description The events that are sent. */
      events: components["schemas"]["EventName"][];
      /**
       * Format: date-time
       * @description Time of creation.
       */
      created_at: string;
      /** @description Whether events are sent. While it is false, deliveries are stored with the status `held`. */
      enabled: boolean;
      /**
       * @description Reason for disabling; null = enabled.
       *
       *     - `gone`: the receiver responded with 410
       *     - `failing`: no delivery succeeded for days
       *     - `manual`: disabled by a user
       * @enum {string|null}
       */
      disabled_reason: "gone" | "failing" | "manual" | null;
    };
    Webhook: {
      /**
       * Format: uuid
       * @description Id of the webhook, as used in paths.
       */
      id: string;
      /**
       * Format: uuid
       * @description Id of the project whose events are sent.
       */
      project_id: string;
      /** @description URL that events are sent to, as a POST request. */
      url: string;
      /** @description The events that are sent. */
      events: components["schemas"]["EventName"][];
      /**
       * Format: date-time
       * @description Time of creation.
       */
      created_at: string;
      /** @description Whether events are sent. While it is false, deliveries are stored with the status `held`. */
      enabled: boolean;
      /**
       * @description Reason for disabling; null = enabled.
       *
       *     - `gone`: the receiver responded with 410
       *     - `failing`: no delivery succeeded for days
       *     - `manual`: disabled by a user
       * @enum {string|null}
       */
      disabled_reason: "gone" | "failing" | "manual" | null;
      /**
       * Format: date-time
       * @description Time of disabling; null = enabled.
       */
      disabled_at: string | null;
    };
    RotatedWebhook: {
      /**
       * Format: uuid
       * @description Id of the webhook, as used in paths.
       */
      id: string;
      /**
       * Format: uuid
       * @description Id of the project whose events are sent.
       */
      project_id: string;
      /** @description URL that events are sent to, as a POST request. */
      url: string;
      /** @description The events that are sent. */
      events: components["schemas"]["EventName"][];
      /**
       * Format: date-time
       * @description Time of creation.
       */
      created_at: string;
      /** @description Whether events are sent. While it is false, deliveries are stored with the status `held`. */
      enabled: boolean;
      /**
       * @description Reason for disabling; null = enabled.
       *
       *     - `gone`: the receiver responded with 410
       *     - `failing`: no delivery succeeded for days
       *     - `manual`: disabled by a user
       * @enum {string|null}
       */
      disabled_reason: "gone" | "failing" | "manual" | null;
      /**
       * Format: date-time
       * @description Time of disabling; null = enabled.
       */
      disabled_at: string | null;
      /** @description Secret that signs every delivery. Returned only once. */
      secret: string;
    };
    Delivery: {
      /**
       * Format: uuid
       * @description The id of the delivery. Sent to the receiver as `X-Service-Delivery`, the same at every attempt.
       */
      id: string;
      /**
       * Format: uuid
       * @description The webhook that receives the delivery.
       */
      webhook_id: string;
      event: components["schemas"]["EventName"];
      /**
       * Format: uuid
       * @description The deployment that the event is about.
       */
      deployment_id: string;
      /**
       * @description The status of the delivery.
       *
       *     - `pending`: an attempt is due now, or at `next_attempt_at`
       *     - `succeeded`: the receiver returned 2xx
       *     - `failed`: all attempts failed
       *     - `held`: the webhook was disabled when the event arrived or the next attempt was due
       *     - `cancelled`: the webhook was deleted before the delivery succeeded
       * @enum {string}
       */
      status: "pending" | "succeeded" | "failed" | "held" | "cancelled";
      /** @description Whether this is a test delivery with sample data. */
      test: boolean;
      /**
       * Format: date-time
       * @description When the delivery was created, shortly after the event arrived.
       */
      created_at: string;
      /**
       * Format: date-time
       * @description When the next attempt is planned; null when no attempt is planned.
       */
      next_attempt_at: string | null;
      /** @description The number of attempts made so far. */
      attempt_count: number;
    };
    DeliveryWithAttempts: {
      /**
       * Format: uuid
       * @description The id of the delivery. Sent to the receiver as `X-Service-Delivery`, the same at every attempt.
       */
      id: string;
      /**
       * Format: uuid
       * @description The webhook that receives the delivery.
       */
      webhook_id: string;
      event: components["schemas"]["EventName"];
      /**
       * Format: uuid
       * @description The deployment that the event is about.
       */
      deployment_id: string;
      /**
       * @description The status of the delivery.
       *
       *     - `pending`: an attempt is due now, or at `next_attempt_at`
       *     - `succeeded`: the receiver returned 2xx
       *     - `failed`: all attempts failed
       *     - `held`: the webhook was disabled when the event arrived or the next attempt was due
       *     - `cancelled`: the webhook was deleted before the delivery succeeded
       * @enum {string}
       */
      status: "pending" | "succeeded" | "failed" | "held" | "cancelled";
      /** @description Whether this is a test delivery with sample data. */
      test: boolean;
      /**
       * Format: date-time
       * @description When the delivery was created, shortly after the event arrived.
       */
      created_at: string;
      /**
       * Format: date-time
       * @description When the next attempt is planned; null when no attempt is planned.
       */
      next_attempt_at: string | null;
      /** @description The number of attempts made so far. */
      attempt_count: number;
      payload:
        | components["schemas"]["DeployStarted"]
        | components["schemas"]["DeploySucceeded"]
        | components["schemas"]["DeployFailed"];
      /** @description The attempts so far, oldest first. */
      attempts: components["schemas"]["Attempt"][];
    };
    Attempt: {
      /** @description The number of the attempt, from 1. */
      number: number;
      /**
       * Format: date-time
       * @description When the attempt was made.
       */
      at: string;
      /** @description Milliseconds from connecting to the last byte read. */
      duration_ms: number;
      /** @description The status code of the response; null when no response arrived. */
      status_code: number | null;
      /**
       * @description Why the attempt failed; null for a success.
       *
       *     - `http_status`: the receiver returned a status other than 2xx
       *     - `timeout`: no complete response within 15 seconds
       *     - `dns_error`: the host name does not resolve
       *     - `connection_refused`: nothing accepts connections at the host and port
       *     - `connection_reset`: the connection was closed before the response was complete
       *     - `tls_error`: the TLS connection failed; the hint names the cause
       *     - `address_blocked`: the host resolves to an address that is not public
       *     - `invalid_response`: the response is not valid HTTP/1.1, or its headers are too large
       * @enum {string|null}
       */
      error_code:
        | "http_status"
        | "timeout"
        | "dns_error"
        | "connection_refused"
        | "connection_reset"
        | "tls_error"
        | "address_blocked"
        | "invalid_response"
        | null;
      /** @description The start of the response body, at most 1 KB; null when it is empty. */
      response_excerpt: string | null;
      /**
       * @description Why the attempt was made.
       *
       *     - `schedule`: it was due according to the retry schedule
       *     - `redeliver`: a redelivery of this delivery was requested
       *     - `recover`: a recovery of failed or held deliveries was requested
       *     - `test`: a test delivery was requested
       * @enum {string}
       */
      trigger: "schedule" | "redeliver" | "recover" | "test";
      /** @description One sentence on how to fix the receiver; null for a success. */
      hint: string | null;
    };
    Recovered: {
      /** @description The number of deliveries that are sent again. A call stops at 10,000 or after 20 seconds; repeat it to continue. */
      count: number;
    };
    /**
     * @description Name of the event.
     *
     *     - `deploy.started`: a build has started
     *     - `deploy.succeeded`: the deployment is live and healthy
     *     - `deploy.failed`: the build or a health check failed
     * @enum {string}
     */
    EventName: "deploy.started" | "deploy.succeeded" | "deploy.failed";
    DeployStarted: {
      /**
       * @description Name of the event.
       * @constant
       */
      event: "deploy.started";
      /**
       * Format: uuid
       * @description Id of the project.
       */
      project_id: string;
      /**
       * Format: uuid
       * @description Id of the deployment.
       */
      deployment_id: string;
      /**
       * Format: date-time
       * @description Time of the event, ISO 8601 in UTC.
       */
      timestamp: string;
      /** @description Data of the pipeline, passed on unchanged; `{}` when the pipeline sends none. */
      data: {
        [key: string]: unknown;
      };
    };
    DeploySucceeded: {
      /**
       * @description Name of the event.
       * @constant
       */
      event: "deploy.succeeded";
      /**
       * Format: uuid
       * @description Id of the project.
       */
      project_id: string;
      /**
       * Format: uuid
       * @description Id of the deployment.
       */
      deployment_id: string;
      /**
       * Format: date-time
       * @description Time of the event, ISO 8601 in UTC.
       */
      timestamp: string;
      /** @description URL and status of the app. Other fields of the pipeline are passed on unchanged. */
      data: {
        /** @description Public URL of the app. */
        url: string;
        /**
         * @description The app serves requests.
         * @constant
         */
        status: "running";
      } & {
        [key: string]: unknown;
      };
    };
    DeployFailed: {
      /**
       * @description Name of the event.
       * @constant
       */
      event: "deploy.failed";
      /**
       * Format: uuid
       * @description Id of the project.
       */
      project_id: string;
      /**
       * Format: uuid
       * @description Id of the deployment.
       */
      deployment_id: string;
      /**
       * Format: date-time
       * @description Time of the event, ISO 8601 in UTC.
       */
      timestamp: string;
      /** @description Data of the pipeline, passed on unchanged; `{}` when the pipeline sends none. */
      data: {
        [key: string]: unknown;
      };
    };
  };
  responses: {
    /** @description `method_not_allowed`: The path does not take this method. */
    MethodNotAllowed: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        Allow: components["headers"]["Allow"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "method_not_allowed";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /**
     * @description `invalid_json`: The body is not JSON.
     *
     *     `validation_error`: A field or parameter is missing, wrong or unknown; `details` says which.
     */
    BadRequest: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "invalid_json" | "validation_error";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
            /** @description One entry for each invalid field of the input. */
            details?: {
              /** @description Path of the field, for example `events.0`; empty for the whole body. */
              path: string;
              /** @description The rule that the field violates. */
              message: string;
            }[];
          };
        };
      };
    };
    /**
     * @description `unauthorized`: There is no usable `Authorization` header.
     *
     *     `invalid_token`: The JWT does not hold.
     *
     *     `token_expired`: The JWT has expired: sign in again.
     *
     *     `invalid_api_key`: The API key is malformed, unknown or deleted.
     */
    Unauthorized: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "unauthorized" | "invalid_token" | "token_expired" | "invalid_api_key";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `session_required`: An API key may not do this: send a JWT. */
    SessionRequired: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "session_required";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `api_key_limit_reached`: The user has as many keys as one can have. */
    ApiKeyLimitReached: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "api_key_limit_reached";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `payload_too_large`: The body is larger than 64 KB. */
    PayloadTooLarge: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "payload_too_large";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `unsupported_media_type`: The body is not sent as `Content-Type: application/json`. */
    UnsupportedMediaType: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "unsupported_media_type";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `rate_limited`: Too many requests: wait as long as `Retry-After` says. */
    RateLimited: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        "Retry-After": components["headers"]["Retry-After"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "rate_limited";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `internal_error`: A fault of the service. */
    InternalError: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "internal_error";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `service_unavailable`: The service is busy or partly down: try again after `Retry-After`. The credential may be fine. */
    ServiceUnavailable: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        "Retry-After": components["headers"]["Retry-After"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "service_unavailable";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `not_found`: There is nothing with this id, or it is not yours. */
    NotFound: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "not_found";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `forbidden`: A viewer of the project may look but not change. */
    Forbidden: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "forbidden";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `webhook_limit_reached`: The project has as many webhooks as one can have. */
    WebhookLimitReached: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "webhook_limit_reached";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
    /** @description `validation_error`: A field or parameter is missing, wrong or unknown; `details` says which. */
    ValidationError: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "validation_error";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
            /** @description One entry for each invalid field of the input. */
            details?: {
              /** @description Path of the field, for example `events.0`; empty for the whole body. */
              path: string;
              /** @description The rule that the field violates. */
              message: string;
            }[];
          };
        };
      };
    };
    /** @description `conflict`: It cannot be done in the state that things are in; the message says why. */
    Conflict: {
      headers: {
        "x-request-id": components["headers"]["x-request-id"];
        "Cache-Control": components["headers"]["Cache-Control"];
        "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
        "X-Frame-Options": components["headers"]["X-Frame-Options"];
        "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
        [name: string]: unknown;
      };
      content: {
        "application/json": {
          error: {
            /**
             * @description Error code for programs. Part of the API.
             * @enum {string}
             */
            code: "conflict";
            /** @description Error message for people. May change. */
            message: string;
            /**
             * Format: uuid
             * @description Id of the request, also in the header `x-request-id`.
             */
            request_id: string;
          };
        };
      };
    };
  };
  parameters: {
    /** @description Id of the API key. */
    id: string;
    /** @description Id of the project. */
    project_id: string;
    /** @description Id of the webhook. */
    webhook_id: string;
    /** @description Id of the delivery. */
    delivery_id: string;
  };
  requestBodies: never;
  headers: {
    /** @description Id of the request. Name it when you ask for help. */
    "x-request-id": string;
    /** @description The same on every answer. */
    "Cache-Control": "no-store";
    /** @description The same on every answer. */
    "X-Content-Type-Options": "nosniff";
    /** @description The same on every answer. */
    "X-Frame-Options": "DENY";
    /** @description The same on every answer. */
    "Strict-Transport-Security": "max-age=63072000";
    /** @description The next page, `<url>; rel="next"` (RFC 8288). Absent on the last one. */
    Link: string;
    /** @description Seconds to wait before the next try. */
    "Retry-After": number;
    /** @description Asks for a bearer token (RFC 6750); with `error="invalid_token"` when one was sent. */
    "WWW-Authenticate": string;
    /** @description The methods that the path takes. */
    Allow: string;
  };
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  listApiKeys: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "01a1fc46-ece3-77b8-9ef0-ed62555e0e50",
           *           "name": "ci",
           *           "key_prefix": "svc_bea7ab28",
           *           "last_used_at": "2026-11-21T04:05:29.027Z",
           *           "created_at": "2026-11-21T04:04:29.027Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["ApiKey"][];
          };
        };
      };
      401: components["responses"]["Unauthorized"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  createApiKey: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "ci"
         *     }
         */
        "application/json": {
          /** @description The label that lists show. 1 to 100 characters, none of them a control character. */
          name: string;
        };
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-77b8-9ef0-ed62555e0e50",
           *         "name": "ci",
           *         "key": "svc_bea7ab2859e7dcdb406bba1779416e74889c57baa1bc90445607dac2b43bec42",
           *         "key_prefix": "svc_bea7ab28",
           *         "created_at": "2026-11-21T04:04:29.027Z"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["CreatedApiKey"];
          };
        };
      };
      400: components["responses"]["BadRequest"];
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["SessionRequired"];
      409: components["responses"]["ApiKeyLimitReached"];
      413: components["responses"]["PayloadTooLarge"];
      415: components["responses"]["UnsupportedMediaType"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  deleteApiKey: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the API key. */
        id: components["parameters"]["id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. The body is empty. */
      204: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components["responses"]["Unauthorized"];
      404: components["responses"]["NotFound"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  listProjects: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *           "name": "My shop",
           *           "role": "admin",
           *           "created_at": "2026-11-21T04:04:29.027Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["Project"][];
          };
        };
      };
      401: components["responses"]["Unauthorized"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  listWebhooks: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *           "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *           "url": "https://hooks.example.com/deployments",
           *           "events": [
           *             "deploy.succeeded",
           *             "deploy.failed"
           *           ],
           *           "created_at": "2026-11-21T04:04:29.027Z",
           *           "enabled": true,
           *           "disabled_reason": null
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["WebhookInList"][];
          };
        };
      };
      401: components["responses"]["Unauthorized"];
      404: components["responses"]["NotFound"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  createWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "url": "https://hooks.example.com/deployments",
         *       "events": [
         *         "deploy.succeeded",
         *         "deploy.failed"
         *       ]
         *     }
         */
        "application/json": {
          /** @description Where events are posted to: an https URL with a public host name or address, in ASCII, without a user name and password. A local run takes plain http to this machine too. */
          url: string;
          /** @description Which events to send. */
          events: ("deploy.started" | "deploy.succeeded" | "deploy.failed")[];
        };
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *         "url": "https://hooks.example.com/deployments",
           *         "secret": "whsec_66f945c78d31822bd9a1f39bf0aae070bb158a9aee8ef81f7f1919cb0d5f6a15",
           *         "events": [
           *           "deploy.succeeded",
           *           "deploy.failed"
           *         ],
           *         "created_at": "2026-11-21T04:04:29.027Z"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["CreatedWebhook"];
          };
        };
      };
      400: components["responses"]["BadRequest"];
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      409: components["responses"]["WebhookLimitReached"];
      413: components["responses"]["PayloadTooLarge"];
      415: components["responses"]["UnsupportedMediaType"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  getWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *         "url": "https://hooks.example.com/deployments",
           *         "events": [
           *           "deploy.succeeded",
           *           "deploy.failed"
           *         ],
           *         "created_at": "2026-11-21T04:04:29.027Z",
           *         "enabled": true,
           *         "disabled_reason": null,
           *         "disabled_at": null
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["Webhook"];
          };
        };
      };
      401: components["responses"]["Unauthorized"];
      404: components["responses"]["NotFound"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  deleteWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. The body is empty. */
      204: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  updateWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "enabled": false
         *     }
         */
        "application/json": {
          /** @description Where events are posted to: an https URL with a public host name or address, in ASCII, without a user name and password. A local run takes plain http to this machine too. */
          url?: string;
          /** @description Which events to send. */
          events?: ("deploy.started" | "deploy.succeeded" | "deploy.failed")[];
          /** @description `false` stops deliveries, `true` starts anew. */
          enabled?: boolean;
        };
      };
    };
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *         "url": "https://hooks.example.com/deployments",
           *         "events": [
           *           "deploy.succeeded",
           *           "deploy.failed"
           *         ],
           *         "created_at": "2026-11-21T04:04:29.027Z",
           *         "enabled": false,
           *         "disabled_reason": "manual",
           *         "disabled_at": "2026-11-21T05:04:29.027Z"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["Webhook"];
          };
        };
      };
      400: components["responses"]["BadRequest"];
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      413: components["responses"]["PayloadTooLarge"];
      415: components["responses"]["UnsupportedMediaType"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  rotateWebhookSecret: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "overlap_seconds": 3600
         *     }
         */
        "application/json": {
          /**
           * @description How long the old secret stays valid. 0 ends all old secrets at once.
           * @default 86400
           */
          overlap_seconds?: number;
        };
      };
    };
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *         "url": "https://hooks.example.com/deployments",
           *         "events": [
           *           "deploy.succeeded",
           *           "deploy.failed"
           *         ],
           *         "created_at": "2026-11-21T04:04:29.027Z",
           *         "enabled": true,
           *         "disabled_reason": null,
           *         "disabled_at": null,
           *         "secret": "whsec_73931a255a7d6c7797663d5b004cd56d7e55203d24b4e5878e538e538be34d8d"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["RotatedWebhook"];
          };
        };
      };
      400: components["responses"]["BadRequest"];
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      413: components["responses"]["PayloadTooLarge"];
      415: components["responses"]["UnsupportedMediaType"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  sendTestDelivery: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "event": "deploy.failed"
         *     }
         */
        "application/json": {
          /**
           * @description Which event to pretend.
           * @default deploy.succeeded
           * @enum {string}
           */
          event?: "deploy.started" | "deploy.succeeded" | "deploy.failed";
        };
      };
    };
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-7001-9ce1-3755c2c9f298",
           *         "webhook_id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "event": "deploy.failed",
           *         "deployment_id": "01a1fc46-ece3-7243-8d74-eb1a6e81b28c",
           *         "status": "pending",
           *         "test": true,
           *         "created_at": "2026-11-21T04:04:29.027Z",
           *         "next_attempt_at": "2026-11-21T04:04:29.027Z",
           *         "attempt_count": 0
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["Delivery"];
          };
        };
      };
      400: components["responses"]["BadRequest"];
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      413: components["responses"]["PayloadTooLarge"];
      415: components["responses"]["UnsupportedMediaType"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  listDeliveries: {
    parameters: {
      query?: {
        /** @description Only those that stand there. */
        status?: "pending" | "succeeded" | "failed" | "held" | "cancelled";
        /** @description How many on a page, at most. */
        limit?: number;
        /** @description Where the page starts. Take it from the `Link` of the page before. */
        cursor?: string;
      };
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          Link: components["headers"]["Link"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "01a1fc46-ece3-72cf-a63b-96f2a7307b8c",
           *           "webhook_id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *           "event": "deploy.succeeded",
           *           "deployment_id": "01a1fc46-ece3-70d3-85ce-8f19d808fd16",
           *           "status": "pending",
           *           "test": false,
           *           "created_at": "2026-11-21T04:04:29.027Z",
           *           "next_attempt_at": "2026-11-21T04:04:35.027Z",
           *           "attempt_count": 1
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["Delivery"][];
          };
        };
      };
      400: components["responses"]["ValidationError"];
      401: components["responses"]["Unauthorized"];
      404: components["responses"]["NotFound"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  getDelivery: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
        /** @description Id of the delivery. */
        delivery_id: components["parameters"]["delivery_id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OK */
      200: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-72cf-a63b-96f2a7307b8c",
           *         "webhook_id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "event": "deploy.succeeded",
           *         "deployment_id": "01a1fc46-ece3-70d3-85ce-8f19d808fd16",
           *         "status": "pending",
           *         "test": false,
           *         "created_at": "2026-11-21T04:04:29.027Z",
           *         "next_attempt_at": "2026-11-21T04:04:35.027Z",
           *         "attempt_count": 1,
           *         "payload": {
           *           "event": "deploy.succeeded",
           *           "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
           *           "deployment_id": "01a1fc46-ece3-70d3-85ce-8f19d808fd16",
           *           "timestamp": "2026-11-21T04:04:29.027Z",
           *           "data": {
           *             "url": "https://demo.example.com",
           *             "status": "running"
           *           }
           *         },
           *         "attempts": [
           *           {
           *             "number": 1,
           *             "at": "2026-11-21T04:04:30.027Z",
           *             "duration_ms": 41.2,
           *             "status_code": 503,
           *             "error_code": "http_status",
           *             "response_excerpt": "upstream is restarting",
           *             "trigger": "schedule",
           *             "hint": "The receiver returned 503: check its log at the time of the attempt."
           *           }
           *         ]
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["DeliveryWithAttempts"];
          };
        };
      };
      401: components["responses"]["Unauthorized"];
      404: components["responses"]["NotFound"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  redeliver: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
        /** @description Id of the delivery. */
        delivery_id: components["parameters"]["delivery_id"];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "01a1fc46-ece3-72cf-a63b-96f2a7307b8c",
           *         "webhook_id": "01a1fc46-ece3-743f-824e-59c146a0072d",
           *         "event": "deploy.succeeded",
           *         "deployment_id": "01a1fc46-ece3-70d3-85ce-8f19d808fd16",
           *         "status": "pending",
           *         "test": false,
           *         "created_at": "2026-11-21T04:04:29.027Z",
           *         "next_attempt_at": "2026-11-21T04:06:29.027Z",
           *         "attempt_count": 1
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["Delivery"];
          };
        };
      };
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      409: components["responses"]["Conflict"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  recoverDeliveries: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description Id of the project. */
        project_id: components["parameters"]["project_id"];
        /** @description Id of the webhook. */
        webhook_id: components["parameters"]["webhook_id"];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "since": "2026-11-20T00:00:00Z",
         *       "status": "failed"
         *     }
         */
        "application/json": {
          /**
           * Format: date-time
           * @description Time of the first event that is meant, with its zone.
           */
          since: string;
          /**
           * @description Only those that stand there. Default: both.
           * @enum {string}
           */
          status?: "failed" | "held";
        };
      };
    };
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          "x-request-id": components["headers"]["x-request-id"];
          "Cache-Control": components["headers"]["Cache-Control"];
          "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
          "X-Frame-Options": components["headers"]["X-Frame-Options"];
          "Strict-Transport-Security": components["headers"]["Strict-Transport-Security"];
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "data": {
           *         "count": 12
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["Recovered"];
          };
        };
      };
      400: components["responses"]["BadRequest"];
      401: components["responses"]["Unauthorized"];
      403: components["responses"]["Forbidden"];
      404: components["responses"]["NotFound"];
      409: components["responses"]["Conflict"];
      413: components["responses"]["PayloadTooLarge"];
      415: components["responses"]["UnsupportedMediaType"];
      429: components["responses"]["RateLimited"];
      500: components["responses"]["InternalError"];
      503: components["responses"]["ServiceUnavailable"];
    };
  };
  onDeployStarted: {
    parameters: {
      query?: never;
      header: {
        /** @description Who sends. */
        "User-Agent": "Deployment-Webhooks/1.0";
        /**
         * @description The event, as in the body.
         * @example deploy.started
         */
        "X-Service-Event": "deploy.started";
        /**
         * @description Id of the delivery, the same at every attempt.
         * @example 01a1fc46-ece3-73a2-9ea7-9bdc43bcf595
         */
        "X-Service-Delivery": string;
        /**
         * @description HMAC-SHA256 of the body in hexadecimal, keyed with the webhook's whole secret, `whsec_` included.
         * @example sha256=754124c8e7af0cb370634270db8606738386c723aa7211efcd7e27a2ca245366
         */
        "X-Service-Signature": string;
        /**
         * @description While a secret is rotated: the same by the secrets before, newest first.
         * @example sha256=9dd0d82859b89578da2f69a8932acd069cec7ff60590951ce9cd2879b09798d6
         */
        "X-Service-Signature-Previous"?: string;
        /**
         * @description Standard Webhooks: as `X-Service-Delivery`.
         * @example 01a1fc46-ece3-73a2-9ea7-9bdc43bcf595
         */
        "webhook-id": string;
        /**
         * @description Standard Webhooks: time of the attempt, in seconds since 1970.
         * @example 1795233869
         */
        "webhook-timestamp": string;
        /**
         * @description Standard Webhooks: HMAC-SHA256 of `id.timestamp.body` in base64, keyed with what the part of the secret after `whsec_` decodes to; one for each secret that is valid, newest first.
         * @example v1,6cKoP92+jgfw51sm2qqiqQKHVKrOIGoHvNaJlki2zM8= v1,aM3SAaekAvsHEsAdnEC99yQfvmwGv7EkNKVJUmbaHKc=
         */
        "webhook-signature": string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "event": "deploy.started",
         *       "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
         *       "deployment_id": "01a1fc46-ece3-7780-8d57-7780ceee9ecd",
         *       "timestamp": "2026-11-21T04:04:29.027Z",
         *       "data": {}
         *     }
         */
        "application/json": components["schemas"]["DeployStarted"];
      };
    };
    responses: {
      /** @description Gone for good. The webhook is disabled. */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Received. The delivery has succeeded. */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received: tried again on schedule. */
      "4XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received: tried again on schedule. */
      "5XX": {
        headers: {
          /** @description Respected on any answer that is not 2xx, up to 12 hours, where it is longer than the schedule. */
          "Retry-After"?: number;
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onDeploySucceeded: {
    parameters: {
      query?: never;
      header: {
        /** @description Who sends. */
        "User-Agent": "Deployment-Webhooks/1.0";
        /**
         * @description The event, as in the body.
         * @example deploy.succeeded
         */
        "X-Service-Event": "deploy.succeeded";
        /**
         * @description Id of the delivery, the same at every attempt.
         * @example 01a1fc46-ece3-72cf-a63b-96f2a7307b8c
         */
        "X-Service-Delivery": string;
        /**
         * @description HMAC-SHA256 of the body in hexadecimal, keyed with the webhook's whole secret, `whsec_` included.
         * @example sha256=a89443444f6ced3a7107bd09ca81881faecf24514562ce646d5b15f58d32836c
         */
        "X-Service-Signature": string;
        /**
         * @description While a secret is rotated: the same by the secrets before, newest first.
         * @example sha256=8b1d1b05c2f812c9880b2ba6d901d4af093ce2ba65fdda91d21696d0a5f3877b
         */
        "X-Service-Signature-Previous"?: string;
        /**
         * @description Standard Webhooks: as `X-Service-Delivery`.
         * @example 01a1fc46-ece3-72cf-a63b-96f2a7307b8c
         */
        "webhook-id": string;
        /**
         * @description Standard Webhooks: time of the attempt, in seconds since 1970.
         * @example 1795233869
         */
        "webhook-timestamp": string;
        /**
         * @description Standard Webhooks: HMAC-SHA256 of `id.timestamp.body` in base64, keyed with what the part of the secret after `whsec_` decodes to; one for each secret that is valid, newest first.
         * @example v1,VsPGdnvMH3myfip8td0MY1XmJ3zCWdkmljvQLmer4TA= v1,hDZIo4Hm25pQQPedg97UkMP/kJSouXoUM6QE6JJm9lg=
         */
        "webhook-signature": string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "event": "deploy.succeeded",
         *       "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
         *       "deployment_id": "01a1fc46-ece3-70d3-85ce-8f19d808fd16",
         *       "timestamp": "2026-11-21T04:04:29.027Z",
         *       "data": {
         *         "url": "https://demo.example.com",
         *         "status": "running"
         *       }
         *     }
         */
        "application/json": components["schemas"]["DeploySucceeded"];
      };
    };
    responses: {
      /** @description Gone for good. The webhook is disabled. */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Received. The delivery has succeeded. */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received: tried again on schedule. */
      "4XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received: tried again on schedule. */
      "5XX": {
        headers: {
          /** @description Respected on any answer that is not 2xx, up to 12 hours, where it is longer than the schedule. */
          "Retry-After"?: number;
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onDeployFailed: {
    parameters: {
      query?: never;
      header: {
        /** @description Who sends. */
        "User-Agent": "Deployment-Webhooks/1.0";
        /**
         * @description The event, as in the body.
         * @example deploy.failed
         */
        "X-Service-Event": "deploy.failed";
        /**
         * @description Id of the delivery, the same at every attempt.
         * @example 01a1fc46-ece3-7001-9ce1-3755c2c9f298
         */
        "X-Service-Delivery": string;
        /**
         * @description HMAC-SHA256 of the body in hexadecimal, keyed with the webhook's whole secret, `whsec_` included.
         * @example sha256=3618f25af19e9629caa83d861d38056693f39a3ae0e36ebd3802afc533311d43
         */
        "X-Service-Signature": string;
        /**
         * @description While a secret is rotated: the same by the secrets before, newest first.
         * @example sha256=f82ba75231f983b539cc8912eb865a2dcd0e1c830020cb07c74c4f32ac95b982
         */
        "X-Service-Signature-Previous"?: string;
        /**
         * @description Standard Webhooks: as `X-Service-Delivery`.
         * @example 01a1fc46-ece3-7001-9ce1-3755c2c9f298
         */
        "webhook-id": string;
        /**
         * @description Standard Webhooks: time of the attempt, in seconds since 1970.
         * @example 1795233869
         */
        "webhook-timestamp": string;
        /**
         * @description Standard Webhooks: HMAC-SHA256 of `id.timestamp.body` in base64, keyed with what the part of the secret after `whsec_` decodes to; one for each secret that is valid, newest first.
         * @example v1,cLKHY3Gu7ztfqH2KJyomuTVO06ZBCG4jSfy2VP08RIc= v1,IEg1dP7ZIYMFliAO/4quVH+bnWVTGnWQgrSSrPuNM0c=
         */
        "webhook-signature": string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "event": "deploy.failed",
         *       "project_id": "01a1fc46-ece3-7749-804d-53ab431e8518",
         *       "deployment_id": "01a1fc46-ece3-7243-8d74-eb1a6e81b28c",
         *       "timestamp": "2026-11-21T04:04:29.027Z",
         *       "data": {
         *         "reason": "health check timed out"
         *       }
         *     }
         */
        "application/json": components["schemas"]["DeployFailed"];
      };
    };
    responses: {
      /** @description Gone for good. The webhook is disabled. */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Received. The delivery has succeeded. */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received: tried again on schedule. */
      "4XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received: tried again on schedule. */
      "5XX": {
        headers: {
          /** @description Respected on any answer that is not 2xx, up to 12 hours, where it is longer than the schedule. */
          "Retry-After"?: number;
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
}
