import { subscribableNames } from "../../foundation/events/catalogue.ts";
import { SUBSCRIPTION } from "../../foundation/manifest/events.ts";
import { listsEvent } from "./event-filter.ts";

/** Returns the names of the catalogue that a list of names and patterns has, in the order of the list. */
export const subscribedNames = (events: readonly string[]): string[] =>
  events.flatMap((listed) => subscribableNames().filter((name) => listsEvent([listed], name)));

/** Returns the rule that an entry of the `events` of a webhook breaks; undefined = none. */
export const subscriptionProblem = (listed: string): string | undefined =>
  SUBSCRIPTION.test(listed) && subscribedNames([listed]).length > 0
    ? undefined
    : `must be one of ${subscribableNames().join(", ")}, or a pattern for some of them: * or deploy.*`;
