/* Types of the ways to send, and the body that all of them send. */

export interface Target {
  url: string;
  secret: string;
}

/** One delivery of `BODY`, with its id. */
export interface Delivery {
  target: Target;
  id: string;
}

export interface Way {
  /** Resolves to whether the receiver accepted the delivery. Never rejects because of a receiver. */
  send(delivery: Delivery): Promise<boolean>;
  /** Runs before the deliveries are sent. Its CPU time is not counted. */
  prepare?(deliveries: Delivery[]): Promise<void>;
}

/** Sends to all targets equally often, in small chunks until the time is over, and one chunk at least. */
export interface Job {
  targets: Target[];
  /** The number of concurrent deliveries. */
  concurrency: number;
  forMs: number;
}

export interface Done {
  sent: number;
  /** User and system CPU time of this process. */
  cpuMs: number;
  wallMs: number;
  /** Delivery ids. */
  accepted: string[];
  failed: string[];
}

export const BODY = JSON.stringify({
  event: "deploy.succeeded",
  project_id: "01930000-0000-7000-8000-00000000d301",
  deployment_id: "5b8f4a5e-6f0c-4c52-9a54-0f5a9e1f3f11",
  timestamp: "2026-11-21T04:04:29.027Z",
  data: { url: "https://shop-4f2a.example.com", status: "running", commit: "3f786850e387550fdab836ed7e6dc881de23001b" },
});
