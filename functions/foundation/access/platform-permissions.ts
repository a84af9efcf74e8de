import * as z from "zod/mini";
import { platformPermissionList } from "../manifest/permissions.ts";
import { settings } from "../platform/env.ts";
import { orRequired, parse, setOf } from "../schema/input.ts";
import { jsonListSetting } from "../schema/json-setting.ts";

/** Returns the permissions that the platform adds in this stage. */
export const platformPermissions = jsonListSetting(
  "PERMISSIONS",
  settings.permissions,
  '[{"name":"registry:push","description":"push images"}]',
  (value) => parse(platformPermissionList(), value),
);

/** Returns the names of permissions of this API and of those that the platform adds. */
export const withPlatformPermissions = (own: readonly string[]): string[] => [
  ...own,
  ...platformPermissions().map(({ name }) => name),
];

/** A set of permissions of this API and of the platform. @param own those of this API that are allowed */
export function permissionSet(own: readonly string[]) {
  const names = withPlatformPermissions(own);
  return setOf(z.enum(names, orRequired(`must be one of ${names.join(", ")}`)), names.length);
}
