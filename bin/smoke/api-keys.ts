import * as z from "zod/mini";
import { uuid } from "../../functions/schema/input.ts";
import { assert, expectData, expectError, expectNoContent } from "./assertions.ts";
import { type CheckContext, type CheckGroup, requireResource, signedIn } from "./context.ts";

/* An API key's life, from the answer that shows it to the refusal that follows its deletion. */

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

const madeKey = ({ key }: CheckContext) => requireResource(key, "no API key was made");

async function listed(scene: CheckContext) {
  const { id, key } = madeKey(scene);
  const answer = await scene.send("GET", keysPath, { token: scene.options.token });
  const entry = expectData(answer, 200, listedKeys).find((each) => each.id === id);
  assert(entry !== undefined, `GET ${keysPath}: the key that was just made is not in the list`);
  assert(!answer.text.includes(key), `GET ${keysPath}: the list shows the key, which is to be shown once`);
  return entry;
}

export const apiKeys: CheckGroup = {
  title: "API keys",
  sections: ["api-errors", "rejected-credentials"],
  checks: [
    {
      claim: "the JWT makes a key",
      async run(scene) {
        signedIn(scene);
        const { send, options, mark, secrets } = scene;
        const answer = await send("POST", keysPath, { token: options.token, body: { name: mark } });
        const { id, key, key_prefix: keyPrefix } = expectData(answer, 201, createdKey);
        secrets.add(key);
        scene.key = { id, key, keyPrefix };
        scene.made.set(`${keysPath}/${id}`, "API key");
        assert(key.startsWith(keyPrefix), `POST ${keysPath}: key_prefix is not how the key starts`);
        return `${keyPrefix}…`;
      },
    },
    {
      claim: "it is listed at once, and never shown again",
      async run(scene) {
        const { key_prefix } = await listed(scene);
        assert(key_prefix === scene.key?.keyPrefix, `GET ${keysPath}: key_prefix is another than at creation`);
        return undefined;
      },
    },
    {
      claim: "it is let in at once, as its owner",
      async run(scene) {
        const answer = await scene.send("GET", "/v1/projects", { token: madeKey(scene).key });
        const projects = expectData(answer, 200, z.array(z.object({ id: uuid })));
        const isOwner =
          projects.map(({ id }) => id).join() ===
          signedIn(scene)
            .map(({ id }) => id)
            .join();
        assert(isOwner, "GET /v1/projects: the key sees other projects than its owner");
        return undefined;
      },
    },
    {
      claim: "it cannot make keys",
      async run(scene) {
        const answer = await scene.send("POST", keysPath, { token: madeKey(scene).key, body: { name: scene.mark } });
        expectError(answer, "session_required");
        return undefined;
      },
    },
    {
      claim: "its use is on record",
      async run(scene) {
        const { last_used_at } = await listed(scene);
        assert(last_used_at !== null, `GET ${keysPath}: last_used_at is null although the key was used`);
        return undefined;
      },
    },
    {
      claim: "it is deleted",
      async run(scene) {
        const path = `${keysPath}/${madeKey(scene).id}`;
        expectNoContent(await scene.send("DELETE", path, { token: scene.options.token }));
        scene.made.delete(path);
        return undefined;
      },
    },
    {
      claim: "it is refused on the very next request",
      async run(scene) {
        expectError(await scene.send("GET", "/v1/projects", { token: madeKey(scene).key }), "invalid_api_key");
        return undefined;
      },
    },
  ],
};
