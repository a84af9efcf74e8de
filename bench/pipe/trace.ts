import { appendFileSync } from "node:fs";
import { ReceiveMessageCommand, SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { BatchGetCommand, DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { clock } from "../receivers.ts";

/*
 * Traces the AWS calls of the service. Preloaded with `node --import`; writes a line `<station> <id> <time>` to the file
 * TRACE_FILE whenever an event passes a station.
 */

/**
 * The stations of an event and its delivery, in this order: received by fan-out, event row written, delivery queued,
 * received by the sender, webhook read. The row of a delivery is written after its request.
 */
export const stations = ["received", "written", "queued", "handed over", "read"] as const;
export type Station = (typeof stations)[number];

/** The stations that an event passes. The others are passed by its delivery. */
export const eventStations: readonly Station[] = ["received", "written"];

/** Interval of writes to the file. */
export const FLUSH_MS = 200;

let lines = "";
const note = (station: Station, id: string) => {
  lines += `${station}\t${id}\t${clock()}\n`;
};

interface Message {
  deployment_id?: string;
  delivery_id?: string;
  delivery?: { id: string };
}

/** Returns the id of the delivery of a message; undefined for an event. */
const deliveryIdOf = ({ delivery, delivery_id }: Message): string | undefined => delivery?.id ?? delivery_id;

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
        const message: Message = JSON.parse(Body);
        const deliveryId = deliveryIdOf(message);
        note(deliveryId ? "handed over" : "received", deliveryId ?? message.deployment_id ?? "");
      }
    }
    if (command instanceof SendMessageBatchCommand) {
      for (const { MessageBody = "" } of command.input.Entries ?? [])
        note("queued", deliveryIdOf(JSON.parse(MessageBody)) ?? "");
    }
  });
  onCall(DynamoDBDocumentClient, (command) => {
    if (command instanceof PutCommand) {
      const { webhook_id, deployment_id } = command.input.Item ?? {};
      if (webhook_id === undefined) note("written", deployment_id);
    }
    if (!(command instanceof BatchGetCommand)) return;
    const keys = Object.values(command.input.RequestItems ?? {}).flatMap(({ Keys = [] }) => Keys);
    for (const { webhook_id, id } of keys) if (webhook_id !== undefined && id !== undefined) note("read", id);
  });
  setInterval(() => {
    if (lines !== "") appendFileSync(file, lines);
    lines = "";
  }, FLUSH_MS).unref();
}

if (process.env.TRACE_FILE) traceTo(process.env.TRACE_FILE);
