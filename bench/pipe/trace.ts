import { appendFileSync } from "node:fs";
import { ReceiveMessageCommand, SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { BatchGetCommand, DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { tables } from "../../functions/manifest/tables.ts";
import { clock } from "../receivers.ts";

/*
 * Traces the AWS calls of the service. Preloaded with `node --import`; writes a line `<station> <id> <time>` to the file
 * TRACE_FILE whenever an event passes a station: the id of the delivery at the station `read`, else that of the deployment.
 */

/** The stations of an event or its delivery, in this order. */
export const stations = ["received", "written", "queued", "handed over", "read"] as const;
export type Station = (typeof stations)[number];

/** Interval of writes to the file. */
export const FLUSH_MS = 200;

let lines = "";
const note = (station: Station, id: string) => {
  lines += `${station}\t${id}\t${clock()}\n`;
};

type Send = (command: unknown, ...rest: unknown[]) => Promise<unknown>;

function onCall(client: { prototype: unknown }, report: (command: unknown, output: unknown) => void): void {
  const prototype = client.prototype as { send: Send };
  const { send } = prototype;
  prototype.send = async function (...args) {
    const output = await Reflect.apply(send, this, args);
    report(args[0], output);
    return output;
  };
}

function traceTo(file: string): void {
  onCall(SQSClient, (command, output) => {
    if (command instanceof ReceiveMessageCommand) {
      for (const { Body = "" } of (output as { Messages?: { Body?: string }[] }).Messages ?? []) {
        const { deployment_id, delivery } = JSON.parse(Body);
        if (delivery) note("handed over", delivery.deployment_id);
        else if (deployment_id) note("received", deployment_id);
      }
    }
    if (command instanceof SendMessageBatchCommand) {
      for (const { MessageBody = "" } of command.input.Entries ?? []) {
        const { delivery } = JSON.parse(MessageBody);
        if (delivery) note("queued", delivery.deployment_id);
      }
    }
  });
  onCall(DynamoDBDocumentClient, (command) => {
    if (command instanceof PutCommand && command.input.TableName === tables.events.name) {
      note("written", command.input.Item?.deployment_id);
    }
    if (!(command instanceof BatchGetCommand)) return;
    const { Keys = [] } = command.input.RequestItems?.[tables.deliveries.name] ?? {};
    for (const { id } of Keys) note("read", id);
  });
  setInterval(() => {
    if (lines !== "") appendFileSync(file, lines);
    lines = "";
  }, FLUSH_MS).unref();
}

if (process.env.TRACE_FILE) traceTo(process.env.TRACE_FILE);
