import * as z from "zod/mini";
import { EVENT_NAME } from "../manifest/events.ts";
import { orRequired } from "../schema/input.ts";

/** The name of an event that this stage has. @param names returns those that are allowed, when it is parsed */
export const eventName = (names: () => string[]) =>
  z.string(orRequired("must be the name of an event")).check(
    z.refine((name) => names().includes(name), { error: () => `must be one of ${names().join(", ")}` }),
    z.meta({ pattern: EVENT_NAME.source }),
  );
