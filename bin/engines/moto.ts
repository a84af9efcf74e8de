import type { Engine } from "./engine.ts";

export const engine: Engine = {
  summary: "the service on moto's DynamoDB and SQS",
  programs: ["moto_server"],
  install: "pipx install 'moto[server]'",
  async run() {},
};
