/* What the ways of sending have in common. */

export interface Target {
  url: string;
  secret: string;
}

/** One delivery: this body under this id. */
export interface Delivery {
  target: Target;
  id: string;
}

export interface Way {
  /** Whether the receiver took it. Never rejects for what a receiver does. */
  send(delivery: Delivery): Promise<boolean>;
  /** What has to be there before; not on the bill. */
  prepare?(deliveries: Delivery[]): Promise<void>;
}

export interface Job {
  targets: Target[];
  count: number;
  /** How many are in work at once. */
  concurrency: number;
}

export interface Done {
  /** User and system time of this process. */
  cpuMs: number;
  wallMs: number;
  /** The ids, in groups by what became of them. */
  taken: string[];
  refused: string[];
}

export const BODY = JSON.stringify({
  event: "deploy.succeeded",
  project_id: "01930000-0000-7000-8000-00000000d301",
  deployment_id: "5b8f4a5e-6f0c-4c52-9a54-0f5a9e1f3f11",
  timestamp: "2026-11-21T04:04:29.027Z",
  data: { url: "https://shop-4f2a.example.com", status: "running", commit: "3f786850e387550fdab836ed7e6dc881de23001b" },
});
