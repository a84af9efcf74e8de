import { Annotations, Stack } from "aws-cdk-lib";
import type * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import * as iam from "aws-cdk-lib/aws-iam";
import * as sns from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Construct } from "constructs";
import type { Stage } from "../stage.ts";
import { createAlarm } from "./alarm.ts";
import { alarmRows } from "./alarm-rows.ts";
import type { MonitoredResources } from "./monitored-resources.ts";

export interface Alarms {
  /** Receives every alarm, and again when the alarm ends. */
  topic: sns.Topic;
  all: cloudwatch.Alarm[];
}

/** Creates the alarms of a stage, one per row of alarm-rows.ts, and the topic that they notify. */
export function createAlarms(scope: Construct, monitored: MonitoredResources): Alarms {
  warnWithoutSubscriber(scope, monitored.stage);
  const folder = new Construct(scope, "Alarms");
  const topic = createTopic(folder, monitored.stage);
  const action = new SnsAction(topic);
  const all = alarmRows(monitored).map((row) => {
    const alarm = createAlarm(folder, `${monitored.stage.name}-${row.severity}-${row.id}`, row);
    alarm.addAlarmAction(action);
    alarm.addOkAction(action);
    return alarm;
  });
  return { topic, all };
}

function createTopic(scope: Construct, { name, alarmEmail }: Pick<Stage, "name" | "alarmEmail">): sns.Topic {
  // Not encrypted with KMS: alarms hold no secrets, and CloudWatch cannot publish to a topic under the AWS managed key.
  const topic = new sns.Topic(scope, "Topic", { displayName: `Deployment webhooks, ${name}`, enforceSSL: true });
  // enforceSSL adds a policy, which replaces the default one that lets the account's alarms publish.
  topic.addToResourcePolicy(
    new iam.PolicyStatement({
      principals: [new iam.ServicePrincipal("cloudwatch.amazonaws.com")],
      actions: ["sns:Publish"],
      resources: [topic.topicArn],
      conditions: { StringEquals: { "aws:SourceAccount": Stack.of(scope).account } },
    }),
  );
  if (alarmEmail !== undefined) topic.addSubscription(new EmailSubscription(alarmEmail));
  return topic;
}

/** Warns at synthesis when a stage that keeps data has no address for its alarms. */
function warnWithoutSubscriber(scope: Construct, { keepsData, alarmEmail }: MonitoredResources["stage"]): void {
  if (!keepsData || alarmEmail !== undefined) return;
  const fix = "Set alarmEmail in lib/stages.ts, or subscribe to the topic of the output AlarmTopicArn.";
  Annotations.of(scope).addWarningV2("alarms-without-subscriber", `No one receives the alarms of this stage. ${fix}`);
}
