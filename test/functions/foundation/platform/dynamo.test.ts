import { GetCommand } from "@aws-sdk/lib-dynamodb";
import type { TableKey } from "../../../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { interceptDynamo } from "../../../support/aws-calls.ts";
import { useService } from "../../../support/service.ts";

const service = useService();

const hook = { url: "https://example.com/hook", events: ["deploy.failed"] };
const trust = { issuer: "github", repository_id: "1", permissions: ["projects:read"] };
type Counter = [table: TableKey, key: Record<string, string>, attribute: string];

test.each<[string, string, object, (user: string, project: string) => Counter, last: number, second?: number]>([
  [
    "API key",
    "/v1/api-keys",
    { name: "ci" },
    (user_id) => ["userApiKeys", { user_id, id: "#count" }, "key_count"],
    404,
  ],
  ["webhook", "webhooks", hook, (_, project_id) => ["webhooks", { project_id, id: "#count" }, "webhook_count"], 404],
  [
    "trusted workflow",
    "trusted-workflows",
    trust,
    (_, project) => ["trustedWorkflows", { listed_under: `project#${project}`, entry: "#project" }, "trust_count"],
    404,
  ],
  [
    "service account",
    "service-accounts",
    { name: "ci", role: "viewer" },
    (_, project_id) => ["serviceAccounts", { project_id, id: "#count" }, "account_count"],
    // Its removal has begun, and the second request is turned away.
    204,
    409,
  ],
])(
  "a second request that has read the same %s and deletes it counts nothing",
  async (_, list, body, counterOf, last, second = 204) => {
    const { api, userId } = service.user();
    const project = await service.project(userId);
    const path = list.startsWith("/") ? list : `/v1/projects/${project}/${list}`;
    const [first] = [await api.post(path, body), await api.post(path, body)];
    const target = `${path}/${first.body.data.id}`;
    let faster: number | undefined;
    interceptDynamo(async ({ command, input }, send) => {
      const isDelete =
        command === "TransactWriteItemsCommand" &&
        /"(api_key|webhook|\w+_workflow|\w+_account)\.deleted"/.test(JSON.stringify(input));
      if (isDelete && faster === undefined) {
        faster = 0;
        faster = (await api.delete(target)).status;
      }
      return send();
    });
    expect([(await api.delete(target)).status, faster]).toEqual([last, second]);
    const [table, Key, attribute] = counterOf(userId, project);
    const { Item } = await dynamo().send(new GetCommand({ TableName: tableName(table), Key }));
    expect(Item).toMatchObject({ [attribute]: 1 });
  },
);
