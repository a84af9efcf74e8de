import * as z from "zod/mini";
import { type PlatformPermission, platformPermissionList } from "../manifest/permissions.ts";
import { settings } from "../platform/env.ts";
import { orRequired, setOf } from "../schema/input.ts";
import { parseJsonSetting } from "../schema/json-setting.ts";

/**
 * Returns the permissions that the platform adds in this stage: the setting PERMISSIONS.
 * @throws SettingError when it is not valid
 */
export function platformPermissions(): PlatformPermission[] {
  const setting = settings.permissions();
  if (setting === undefined) return [];
  const example = '[{"name":"registry:push","description":"push images"}]';
  return parseJsonSetting("PERMISSIONS", setting, platformPermissionList(), example);
}

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
