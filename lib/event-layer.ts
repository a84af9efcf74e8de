import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileSystem } from "aws-cdk-lib";
import { Code, LayerVersion } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import type { Stage } from "./stage.ts";

const FILE = "events.json";

/**
 * Where the functions find the file of the layer. https://docs.aws.amazon.com/lambda/latest/dg/packaging-layers.html
 */
export const EVENTS_PATH = `/opt/${FILE}`;

/**
 * Creates a layer with the events of a stage, which are more than the environment of a function can have; undefined =
 * it has none.
 */
export function createEventLayer(scope: Construct, { events }: Stage): LayerVersion | undefined {
  if (!events) return undefined;
  const folder = FileSystem.mkdtemp("events-");
  writeFileSync(join(folder, FILE), JSON.stringify(events));
  return new LayerVersion(scope, "EventCatalogue", {
    description: "The events that the stage adds to those of the service",
    code: Code.fromAsset(folder),
  });
}
