import { randomUUID } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { handler as removeMember } from "../../../../functions/identity/members/remove-member.ts";
import { handler as upsertMember } from "../../../../functions/identity/members/upsert-member.ts";
import { useService } from "../../../support/service.ts";

const service = useService();

test("the version of a removed member is kept: for 60 days, or if the member is added again", async () => {
  const { userId } = service.user();
  const project_id = await service.project(userId);
  const Key = { shard: project_id.slice(-1), member: `${project_id}#${userId}` };
  const get = new GetCommand({ TableName: tableName("memberVersions"), Key });
  const stored = async () => (await dynamo().send(get)).Item;
  await removeMember({ user_id: userId, project_id });
  const { version = "", ...removed } = (await stored()) ?? {};
  const delete_after = Math.ceil(Date.parse(version) / 1000) + 60 * 86_400;
  expect(removed).toEqual({ ...Key, removed: true, delete_after });
  await service.project(userId, { projectId: project_id });
  expect(await stored()).toEqual({ ...Key, version: expect.any(String) });
});

const project_id = randomUUID();

test.each([
  ["an addition of an array", upsertMember, [], ""],
  ["an addition of no user", upsertMember, { project_id, name: "Shop" }, "user_id"],
  [
    "an addition of a service account",
    upsertMember,
    { user_id: "service-account:1", project_id, name: "Shop" },
    "user_id",
  ],
  ["an addition of a workflow", upsertMember, { user_id: "workflow:1", project_id, name: "Shop" }, "user_id"],
  ["an addition to no UUID", upsertMember, { user_id: "u", project_id: "shop", name: "Shop" }, "project_id"],
  ["an addition with a blank name", upsertMember, { user_id: "u", project_id, name: " " }, "name"],
  ["an addition with the role null", upsertMember, { user_id: "u", project_id, name: "Shop", role: null }, "role"],
  [
    "an addition with a role in upper case",
    upsertMember,
    { user_id: "u", project_id, name: "Shop", role: "ADMIN" },
    "role",
  ],
  ["an addition with an unknown field", upsertMember, { user_id: "u", project_id, name: "Shop", admin: true }, "admin"],
  ["a removal of nothing", removeMember, undefined, ""],
  ["a removal of no user", removeMember, { project_id }, "user_id"],
  ["a removal from no project", removeMember, { user_id: "u" }, "project_id"],
  ["a removal with an unknown field", removeMember, { user_id: "u", project_id, role: "admin" }, "role"],
])("%s throws validation_error with the path of the field", async (_title, handler, input, path) => {
  await expect(handler(input)).rejects.toMatchObject({ code: "validation_error", details: [{ path }] });
});
