import * as z from "zod/mini";
import { uuid } from "../../functions/schema/input.ts";
import { assert, expectData, expectError, expectNoContent } from "./assertions.ts";
import { type CheckContext, type CheckGroup, requireProjects, requireResource } from "./context.ts";

/* The lifecycle of an API key, from its creation to its rejection after it is deleted. */

const keysPath = "/v1/api-keys";

const createdKey = z.object({
  id: uuid,
  name: z.string(),
  key: z.string().check(z.regex(/^svc_[0-9a-f]{32,}$/)),
  key_prefix: z.string().check(z.regex(/^svc_/)),
  created_at: z.iso.datetime(),
});
const listedKeys = z.array(
  z.object({
    id: uuid,
    name: z.string(),
    key_prefix: z.string(),
    last_used_at: z.nullable(z.iso.datetime()),
    created_at: z.iso.datetime(),
  }),
);

const requireKey = ({ key }: CheckContext) => requireResource(key, "no API key was created");

async function listEntry(context: CheckContext) {
  const { id, key } = requireKey(context);
  const response = await context.sendAsUser("GET", keysPath);
  const entry = expectData(response, 200, listedKeys).find((each) => each.id === id);
  assert(entry !== undefined, `GET ${keysPath}: the list does not contain the key that was just created`);
  assert(
    !response.text.includes(key),
    `GET ${keysPath}: the list contains the key itself, which only creation may show`,
  );
  return entry;
}

export const apiKeys: CheckGroup = {
  title: "API keys",
  sections: ["api-errors", "rejected-credentials"],
  checks: [
    {
      claim: "a key is created with the JWT",
      async run(context) {
        requireProjects(context);
        const { sendAsUser, mark, secrets } = context;
        const response = await sendAsUser("POST", keysPath, { body: { name: mark } });
        const { id, key, key_prefix: keyPrefix } = expectData(response, 201, createdKey);
        secrets.add(key);
        context.key = { id, key, keyPrefix };
        context.created.set(`${keysPath}/${id}`, "API key");
        assert(key.startsWith(keyPrefix), `POST ${keysPath}: the key does not start with key_prefix`);
        return `${keyPrefix}…`;
      },
    },
    {
      claim: "the list shows the new key, but only its prefix",
      async run(context) {
        const { key_prefix } = await listEntry(context);
        assert(key_prefix === context.key?.keyPrefix, `GET ${keysPath}: key_prefix differs from the one at creation`);
      },
    },
    {
      claim: "the key is accepted immediately, as its owner",
      async run(context) {
        const response = await context.send("GET", "/v1/projects", { token: requireKey(context).key });
        const visible = expectData(response, 200, z.array(z.object({ id: uuid })));
        const ids = (projects: { id: string }[]) => projects.map(({ id }) => id).join();
        assert(
          ids(visible) === ids(requireProjects(context)),
          "GET /v1/projects: the key sees other projects than its owner does",
        );
      },
    },
    {
      claim: "the key cannot create keys",
      async run(context) {
        const { key } = requireKey(context);
        const response = await context.send("POST", keysPath, { token: key, body: { name: context.mark } });
        expectError(response, "session_required");
      },
    },
    {
      claim: "the use of the key is recorded",
      async run(context) {
        const { last_used_at } = await listEntry(context);
        assert(last_used_at !== null, `GET ${keysPath}: last_used_at is null although the key was used`);
      },
    },
    {
      claim: "the key is deleted",
      async run(context) {
        const path = `${keysPath}/${requireKey(context).id}`;
        expectNoContent(await context.sendAsUser("DELETE", path));
        context.created.delete(path);
      },
    },
    {
      claim: "the next request with the deleted key is rejected",
      async run(context) {
        expectError(await context.send("GET", "/v1/projects", { token: requireKey(context).key }), "invalid_api_key");
      },
    },
  ],
};
