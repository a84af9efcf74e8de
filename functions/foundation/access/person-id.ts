import * as z from "zod/mini";
import { userId } from "../schema/input.ts";
import { reservedUserIds } from "./identity.ts";

const prefixes = Object.values(reservedUserIds);

/** The id of a person. Ids of service accounts and workflows are refused: only this service creates these callers. */
export const personId = userId.check(
  z.refine(
    (text) => !prefixes.some((prefix) => text.startsWith(prefix)),
    `must not begin with ${prefixes.join(" or ")}`,
  ),
);
