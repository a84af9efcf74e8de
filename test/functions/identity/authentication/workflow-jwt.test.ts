import { createHmac, generateKeyPairSync, randomBytes, randomUUID, sign } from "node:crypto";
import { jest } from "@jest/globals";
import jwt from "jsonwebtoken";
import { mintToken } from "../../../../bin/command/mint-token.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { AUDIENCE, startCiSystem, useCiSystem } from "../../../support/ci-system.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { putAll } from "../../../support/put-all.ts";
import { type Api, send, type TestService, useService } from "../../../support/service.ts";
import { changeItem, itemsOf } from "../../../support/stored-items.ts";

/* The token of a CI job as a credential. */

const ci = useCiSystem("ci");
const elliptic = useCiSystem("elliptic", { algorithm: "ES256" });
const gitlab = useCiSystem("gitlab-internal", { claims: "gitlab" });
const service = useService();
/** The DynamoDB calls on the table of trusts, with their input. */
const reads: { command: string; input: Record<string, unknown> }[] = [];

beforeAll(interceptReads);
beforeEach(() => {
  reads.length = 0;
});
afterEach(() => void jest.useRealTimers());
afterAll(restoreAws);

function interceptReads(): void {
  interceptDynamo(async (call, send) => {
    if (JSON.stringify(call.input).includes("-trusted-workflows")) reads.push(call);
    return send();
  });
}

interface Trusted {
  admin: ReturnType<TestService["user"]>;
  projectId: string;
  trusts: string;
  webhooks: string;
}

async function givenProject(wantedId: string = randomUUID()): Promise<Trusted> {
  const admin = service.user();
  const projectId = await service.project(admin.userId, { projectId: wantedId });
  const project = `/v1/projects/${projectId}`;
  return { admin, projectId, trusts: `${project}/trusted-workflows`, webhooks: `${project}/webhooks` };
}

/** A project that trusts the repository of a CI system. Each has a repository of its own. */
async function givenTrust(changes: object = {}, system = ci) {
  const project = await givenProject();
  const repository_id = String(Math.ceil(Math.random() * 2 ** 40));
  const trust = (body: object = {}, { admin, trusts }: Trusted = project) =>
    admin.api.post(trusts, { ...system.trust, repository_id, ...body });
  const { id } = (await trust(changes)).body.data;
  const idClaim = system === gitlab ? "project_id" : "repository_id";
  const token = (claims: object = {}, header: object = {}) =>
    system.token({ [idClaim]: repository_id, ...claims }, header);
  reads.length = 0;
  return { ...project, id, repository_id, trust, token, as: (claims?: object) => service.as(token(claims)) };
}

const outcome = async (response: ReturnType<Api["get"]>) => {
  const { status, body } = await response;
  return body?.error ? `${status} ${body.error.code}` : status;
};

const webhookInput = { url: "https://hooks.example.com/", events: ["deploy.failed"] };

describe("a trusted workflow", () => {
  test.each([
    ["RS256", () => ci],
    ["ES256", () => elliptic],
    ["GitLab's claims", () => gitlab],
  ])(
    "with %s acts in the project, with one read of trusts per request, also for an id in upper case",
    async (_title, system) => {
      const { as, webhooks, projectId } = await givenTrust({ ref: "refs/heads/main" }, system());
      expect(await outcome(as().post(webhooks, webhookInput))).toBe(201);
      expect(reads.map(({ command, input }) => [command, input.ConsistentRead])).toEqual([["QueryCommand", true]]);
      const [first] = reads;
      expect(await outcome(as().get(webhooks.replace(projectId, projectId.toUpperCase())))).toBe(200);
      // The engine of the tests ignores the case of `begins_with`, which DynamoDB does not.
      expect(reads.map(({ input }) => input)).toEqual([first?.input, first?.input]);
    },
  );

  test("is shown as a workflow, and never as a person", async () => {
    const { id, as, projectId } = await givenTrust({ permissions: ["webhooks:read", "projects:read"] });
    const workflow = as();
    expect((await workflow.get("/v1/api-keys/current")).body.data).toEqual({
      type: "workflow",
      user_id: `workflow:${id}`,
      api_key: null,
      permissions: ["projects:read", "webhooks:read"],
      project_ids: [projectId],
      expires_at: null,
    });
    expect((await workflow.get("/v1/projects")).body.data).toEqual([
      { id: projectId, name: "Project", role: "viewer", created_at: expect.stringMatching(/Z$/) },
    ]);
  });

  test("sees a project in which it may write with the role admin", async () => {
    const { as, trust, projectId, admin } = await givenTrust();
    const [project] = (await as().get("/v1/projects")).body.data;
    expect(project.role).toBe("admin");
    await changeItem("projects", { user_id: admin.userId, project_id: projectId }, { name: "Renamed" });
    await trust();
    // Its time is that of the first trusted workflow, its name that at the time of the last one.
    expect((await as().get("/v1/projects")).body.data).toEqual([{ ...project, name: "Renamed" }]);
  });

  test("is named in the log and in the audit log, with repository, ref and run", async () => {
    const { admin, id, as, projectId, webhooks } = await givenTrust();
    const lines: Record<string, unknown>[] = [];
    logSink.write = (_level, line) => void lines.push(line);
    await as().post(webhooks, webhookInput);
    logSink.write = () => {};
    const where = { user_id: `workflow:${id}`, repository: "acme/shop", ref: "refs/heads/main", run_id: "30433642" };
    expect(lines.find(({ message }) => message === "request")).toMatchObject(where);
    const { body } = await admin.api.get(`/v1/projects/${projectId}/audit-events`);
    expect(body.data[0]).toMatchObject({ action: "webhook.created", actor: { type: "workflow", ...where } });
    expect((await admin.api.get(webhooks)).body.data).toHaveLength(1);
  });

  test("is one of the file and the event in its trust, and of no other", async () => {
    const claims = { job_workflow_ref: "acme/shop/.github/workflows/deploy.yml@refs/heads/main", event_name: "push" };
    const { as, webhooks } = await givenTrust(claims);
    const others = [
      { ...claims, event_name: "issue_comment" },
      { ...claims, job_workflow_ref: "acme/shop/.github/workflows/triage.yml@refs/heads/main" },
      {},
    ];
    expect(await outcome(as(claims).get(webhooks))).toBe(200);
    for (const other of others) expect(await outcome(as(other).get(webhooks))).toBe("401 workflow_not_trusted");
  });

  test("keeps its access when the admin who trusts it leaves the project", async () => {
    const { as, admin, projectId, webhooks } = await givenTrust();
    await service.project(admin.userId, { projectId, role: "viewer" });
    expect(await outcome(as().get(webhooks))).toBe(200);
  });
});

describe("several trusts", () => {
  test("of a project add up their permissions, and only those that match count", async () => {
    const { as, trust, webhooks } = await givenTrust({ permissions: ["webhooks:read"] });
    await trust({ permissions: ["webhooks:write"], ref: "refs/heads/main" });
    await trust({ permissions: ["deliveries:write"], environment: "prod" });
    const { body } = await as().get("/v1/api-keys/current");
    expect(body.data.permissions).toEqual(["webhooks:read", "webhooks:write"]);
    expect(await outcome(as().post(webhooks, webhookInput))).toBe(201);
    expect(await outcome(as({ ref: "refs/pull/1/merge" }).post(webhooks, webhookInput))).toBe(
      "403 insufficient_permission",
    );
    const deployed = (await as({ environment: "prod" }).get("/v1/api-keys/current")).body.data;
    expect(deployed.permissions).toEqual(["webhooks:read", "webhooks:write", "deliveries:write"]);
  });

  test("of several projects: the project in the path decides", async () => {
    const first = await givenTrust({ permissions: ["webhooks:read", "projects:read"] });
    const second = await givenProject();
    await first.trust({ permissions: ["webhooks:write", "projects:read"] }, second);
    const workflow = first.as();
    for (const id of [first.projectId, first.projectId.toUpperCase()])
      expect(await outcome(workflow.get(first.webhooks.replace(first.projectId, id)))).toBe(200);
    expect(await outcome(workflow.post(first.webhooks, webhookInput))).toBe("403 insufficient_permission");
    expect(await outcome(workflow.get(second.webhooks))).toBe("403 insufficient_permission");
    expect(await outcome(workflow.post(second.webhooks, webhookInput))).toBe(201);
  });

  test("of several projects, without a project in the path, give what each of them gives, in all of them", async () => {
    const first = await givenTrust({ permissions: ["webhooks:read", "projects:read"] });
    const second = await givenProject();
    await first.trust({ permissions: ["webhooks:write", "projects:read"] }, second);
    const ids = [first.projectId, second.projectId].sort();
    const { data } = (await first.as().get("/v1/api-keys/current")).body;
    expect(data).toMatchObject({ user_id: `workflow:${first.id}`, permissions: ["projects:read"] });
    expect(data.project_ids.toSorted()).toEqual(ids);
    const projects: { id: string }[] = (await first.as().get("/v1/projects")).body.data;
    expect(projects.map(({ id }) => id).sort()).toEqual(ids);
  });

  describe("of strangers", () => {
    /** Trusts of the repository in projects of strangers, 10 in each, of which the ids sort before all others. */
    const crowd = async (
      trust: Awaited<ReturnType<typeof givenTrust>>["trust"],
      projects: number,
      body: object = {},
    ) => {
      for (let filled = 0; filled < projects; filled++) {
        const stranger = await givenProject(randomUUID().replace(/^.{8}/, "00000000"));
        await Promise.all(Array.from({ length: 10 }, () => trust(body, stranger)));
      }
    };
    const projectsSeenBy = async (workflow: Api): Promise<string[]> =>
      (await workflow.get("/v1/projects")).body.data.map(({ id }: { id: string }) => id);

    test("cost a request for the project no further read, however many they are", async () => {
      const { token, trust, webhooks } = await givenTrust();
      await crowd(trust, 3);
      reads.length = 0;
      expect(await outcome(service.as(token()).get(webhooks))).toBe(200);
      expect(reads).toHaveLength(1);
    });

    test("do not hide the project from requests without one, neither 30 later nor 30 earlier trusts", async () => {
      const { as, trust, projectId } = await givenTrust();
      await crowd(trust, 3);
      const last = await givenProject(randomUUID().replace(/^.{8}/, "ffffffff"));
      await trust({}, last);
      reads.length = 0;
      const seen = await projectsSeenBy(as());
      expect(seen).toHaveLength(5);
      expect([seen[0], seen[4]]).toEqual([projectId, last.projectId]);
      expect((await as().get("/v1/api-keys/current")).body.data.project_ids).toEqual(seen);
    });

    test("with other refs do not count, and of more than 20 projects those with the oldest trusts are seen", async () => {
      const { as, trust, projectId } = await givenTrust();
      await crowd(trust, 2, { ref: "refs/heads/other" });
      for (let count = 0; count < 21; count++) await trust({}, await givenProject());
      const seen = await projectsSeenBy(as());
      expect(seen).toHaveLength(20);
      expect(seen[0]).toBe(projectId);
    });

    test("cost a request without a project one read, of 20 projects, however many and large they are", async () => {
      const wide = "\u8a9e".repeat(240);
      const largest = {
        name: "\u{1f680}".repeat(100),
        ref: `refs/heads/${wide}`,
        environment: wide,
        job_workflow_ref: `${wide}@main`,
        event_name: "e".repeat(255),
      };
      const { as, token, trust, projectId } = await givenTrust();
      await crowd(trust, 21, largest);
      const claims = { ref: largest.ref, environment: wide, job_workflow_ref: largest.job_workflow_ref };
      const workflow = as({ ...claims, event_name: largest.event_name });
      restoreAws();
      const calls = watchDynamo();
      let trusts = 0;
      interceptDynamo(async (_call, send) => {
        const output = await send();
        trusts += Number(output.Count ?? 0);
        return output;
      });
      const { project_ids } = (await workflow.get("/v1/api-keys/current")).body.data;
      restoreAws();
      interceptReads();
      expect(project_ids).toHaveLength(20);
      expect(project_ids[0]).toBe(projectId);
      expect(calls).toEqual([{ command: "QueryCommand", units: expect.any(Number) }]);
      expect(calls[0]?.units).toBeLessThan(200);
      expect(trusts).toBe(200);
      // A project in the path is read alone, also behind all of theirs.
      const last = await givenProject();
      await trust({}, last);
      expect(await outcome(service.as(token()).get(last.webhooks))).toBe(200);
    });
  });

  test("that are deleted are in no list any more", async () => {
    const { admin, as, trusts, id, trust, webhooks } = await givenTrust();
    const second = await givenProject();
    await trust({}, second);
    await admin.api.delete(`${trusts}/${id}`);
    expect((await as().get("/v1/projects")).body.data.map(({ id }: { id: string }) => id)).toEqual([second.projectId]);
    expect(await outcome(as().get(webhooks))).toBe("404 not_found");
  });
});

describe("an Idempotency-Key of a workflow", () => {
  const create = (token: string, path: string) =>
    send(`${service.baseUrl}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "idempotency-key": "run-1",
      },
      body: JSON.stringify(webhookInput),
    });
  const codes = async (token: string, path: string) => {
    const { status, body } = await create(token, path);
    return body.error?.code ?? status;
  };

  test("belongs to the repository and the project, also after trusts were added and deleted", async () => {
    const { admin, token, trusts, id, trust, webhooks } = await givenTrust();
    expect(await codes(token(), webhooks)).toBe(201);
    const newer = (await trust()).body.data.id;
    expect(await codes(token(), webhooks)).toBe("already_created");
    await admin.api.delete(`${trusts}/${id}`);
    expect((await service.as(token()).get("/v1/api-keys/current")).body.data.user_id).toBe(`workflow:${newer}`);
    expect(await codes(token(), webhooks)).toBe("already_created");
  });

  test("is independent in another project, and of a workflow of another repository or CI system", async () => {
    const { token, trust, webhooks, repository_id } = await givenTrust();
    const elsewhere = await givenProject();
    await trust({}, elsewhere);
    const otherRepository = await trust({ repository_id: "77" });
    expect(otherRepository.status).toBe(201);
    expect(await codes(token(), webhooks)).toBe(201);
    expect(await codes(token(), elsewhere.webhooks)).toBe(201);
    expect(await codes(ci.token({ repository_id: "77" }), webhooks)).toBe(201);
    expect((await trust({ issuer: elliptic.trust.issuer })).status).toBe(201);
    expect(await codes(elliptic.token({ repository_id }), webhooks)).toBe(201);
  });
});

describe("one and the same answer", () => {
  test.each<[string, object, object]>([
    ["another repository of the same name", {}, { repository_id: "4242" }],
    ["another ref", { ref: "refs/heads/main" }, { ref: "refs/heads/main2" }],
    ["a pull request", { ref: "refs/heads/main" }, { ref: "refs/pull/1/merge" }],
    ["a tag with the name of the branch", { ref: "refs/heads/main" }, { ref: "refs/tags/main" }],
    ["no ref", { ref: "refs/heads/main" }, { ref: undefined }],
    ["a list of refs", { ref: "refs/heads/main" }, { ref: ["refs/heads/main"] }],
    ["another environment", { environment: "prod" }, { environment: "Prod" }],
    ["no environment", { environment: "prod" }, {}],
    ["another owner, after a transfer", { repository_owner_id: "65" }, { repository_owner_id: "66" }],
    ["no owner", { repository_owner_id: "65" }, {}],
  ])("is given to %s", async (_title, trusted, claims) => {
    const { as, webhooks, repository_id } = await givenTrust(trusted);
    for (const path of [webhooks, "/v1/projects", "/v1/api-keys/current"]) {
      const { status, body, headers } = await as(claims).get(path);
      expect([status, body.error.code]).toEqual([401, "workflow_not_trusted"]);
      const repository = "repository_id" in claims ? claims.repository_id : repository_id;
      expect(body.error.message).toBe(
        `No project trusts this workflow: repository ${repository} of ci, with its owner, ref, environment, file and event. ` +
          "An admin of the project can add it to the trusted workflows.",
      );
      expect(headers.get("www-authenticate")).toContain('error="invalid_token"');
    }
    // The second read for the project in the path finds whether another one trusts the workflow.
    expect(reads).toHaveLength(4);
  });

  test("is given to a repository with this id of another issuer", async () => {
    const { webhooks, repository_id } = await givenTrust();
    expect(await outcome(service.as(elliptic.token({ repository_id })).get(webhooks))).toBe("401 workflow_not_trusted");
    expect(await outcome(service.as(gitlab.token({ project_id: repository_id })).get(webhooks))).toBe(
      "401 workflow_not_trusted",
    );
  });

  test("is given after the name of the issuer was given to another issuer", async () => {
    const { webhooks, repository_id, as } = await givenTrust();
    const given = process.env.OIDC_ISSUERS ?? "";
    process.env.OIDC_ISSUERS = given.replaceAll('"ci"', '"was-ci"').replaceAll('"elliptic"', '"ci"');
    try {
      expect(await outcome(service.as(elliptic.token({ repository_id })).get(webhooks))).toBe(
        "401 workflow_not_trusted",
      );
      expect(await outcome(as().get(webhooks))).toBe(200);
    } finally {
      process.env.OIDC_ISSUERS = given;
    }
  });
});

const nowSeconds = () => Math.floor(Date.now() / 1000);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

type Given = Awaited<ReturnType<typeof givenTrust>>;

test("a token signed with EdDSA is rejected, although users may have one and the issuer publishes its key", async () => {
  const edwards = await startCiSystem("edwards");
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  edwards.issuer.jwks.keys = [{ ...publicKey.export({ format: "jwk" }), kid: "ed", alg: "EdDSA", use: "sig" }];
  const { token, webhooks } = await givenTrust({}, edwards);
  const [, claims = ""] = token().split(".");
  const signed = `${encode({ alg: "EdDSA", kid: "ed" })}.${claims}`;
  const signature = sign(null, Buffer.from(signed), privateKey).toString("base64url");
  expect((await service.as(`${signed}.${signature}`).get(webhooks)).body.error.code).toBe("invalid_token");
});

describe("without a read, with invalid_token,", () => {
  test.each<[string, (given: Given) => string]>([
    ["another audience", ({ token }) => token({ aud: "https://other.example.com" })],
    ["no audience", ({ token }) => token({ aud: undefined })],
    ["an audience that only begins like ours", ({ token }) => token({ aud: `${AUDIENCE}.evil` })],
    ["another issuer", ({ token }) => token({ iss: "https://token.actions.githubusercontent.com.evil.example" })],
    ["no issuer", ({ token }) => token({ iss: undefined })],
    ["a list of issuers", ({ token }) => token({ iss: [ci.issuer.url] })],
    ["an issuer with a trailing slash", ({ token }) => token({ iss: `${ci.issuer.url}/` })],
    ["the issuer of another key", ({ token }) => token({ iss: elliptic.issuer.url })],
    ["the kid of another issuer", ({ token }) => token({}, { kid: "demo-ES256" })],
    ["the issuer and kid of another key", ({ token }) => token({ iss: gitlab.issuer.url }, { kid: "demo-RS256" })],
    ["the type of a logout token", ({ token }) => token({}, { typ: "logout+jwt" })],
    ["the type of a proof of possession", ({ token }) => token({}, { typ: "application/dpop+jwt" })],
    ["the events of a security event token", ({ token }) => token({ events: {} })],
    ["a lifetime of a day", ({ token }) => token({ exp: nowSeconds() + 86_400 })],
    ["an issue in the future", ({ token }) => token({ iat: nowSeconds() + 600, exp: nowSeconds() + 900 })],
    ["a start in the future", ({ token }) => token({ nbf: nowSeconds() + 600 })],
    ["no repository id", ({ token }) => token({ repository_id: undefined })],
    ["a list of repository ids", ({ token, repository_id }) => token({ repository_id: [repository_id] })],
    ["an object as repository id", ({ token, repository_id }) => token({ repository_id: { id: repository_id } })],
    [
      "a repository id with a control character",
      ({ token, repository_id }) => token({ repository_id: `${repository_id}\0` }),
    ],
    ["claims of 10 KB", ({ token }) => token({ padding: "x".repeat(10_240) })],
    ["claims that are changed", ({ token }) => token().replace(/\.[^.]+\./, `.${encode({ iss: ci.issuer.url })}.`)],
    ["a signature that is cut off", ({ token }) => token().replace(/[^.]+$/, "AAAA")],
    ["the alg none", ({ token }) => token().replace(/^[^.]+/, encode({ alg: "none", kid: "demo-RS256" }))],
    [
      "HS256, keyed with the public key",
      ({ token }) => {
        const [, claims = ""] = token().split(".");
        const signed = `${encode({ alg: "HS256", kid: "demo-RS256" })}.${claims}`;
        const pem = ci.issuer.publicKey.export({ type: "spki", format: "pem" });
        return `${signed}.${createHmac("sha256", pem).update(signed).digest("base64url")}`;
      },
    ],
    [
      "HS256, keyed with the secret of the users' provider",
      ({ repository_id }) =>
        jwt.sign({ iss: ci.issuer.url, aud: AUDIENCE, sub: "user-1", repository_id }, process.env.JWT_SECRET ?? "", {
          expiresIn: 300,
        }),
    ],
    [
      "another key under the kid of the issuer",
      ({ repository_id }) => {
        const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
        const claims = { iss: ci.issuer.url, aud: AUDIENCE, repository_id };
        return jwt.sign(claims, privateKey, { algorithm: "RS256", keyid: "demo-RS256", expiresIn: 300 });
      },
    ],
    [
      "a key of its own in the header",
      ({ repository_id }) => {
        const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
        const header = { alg: "RS256", jku: `${elliptic.issuer.url}/jwks`, jwk: publicKey.export({ format: "jwk" }) };
        return jwt.sign({ iss: ci.issuer.url, aud: AUDIENCE, repository_id }, privateKey, { header, expiresIn: 300 });
      },
    ],
  ])("a token with %s is rejected", async (_title, tokenOf) => {
    const given = await givenTrust();
    expect(await outcome(service.as(tokenOf(given)).get(given.webhooks))).toBe("401 invalid_token");
    expect(reads).toEqual([]);
  });
});

test("an expired token is rejected with advice for a job", async () => {
  const { as, webhooks } = await givenTrust();
  const { status, body } = await as({ iat: nowSeconds() - 400, exp: nowSeconds() - 5 }).get(webhooks);
  expect([status, body.error.code]).toEqual([401, "token_expired"]);
  expect(body.error.message).toBe("The JWT has expired. Request a new one in the job.");
});

test("hostile claims are neither logged nor passed on, and do not break the response", async () => {
  const hostile = '"},"x":{"a":"\\\u0000\n\u202e';
  const { as, webhooks, admin, projectId } = await givenTrust();
  const claims = { repository: hostile, ref: hostile, run_id: hostile, environment: hostile, sub: hostile };
  expect(await outcome(as(claims).post(webhooks, webhookInput))).toBe(201);
  const { actor } = (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body.data[0];
  expect([actor.repository, actor.ref, actor.run_id]).toEqual([undefined, undefined, undefined]);
  expect(await outcome(as({ ...claims, repository_id: "4242" }).get(webhooks))).toBe("401 workflow_not_trusted");
});

test.each(["workflow:", "service-account:"])("no provider signs in a user whose id begins with %s", async (prefix) => {
  const { id, webhooks } = await givenTrust();
  const token = mintToken(process.env.JWT_SECRET ?? "", prefix + id);
  expect(await outcome(service.as(token).get(webhooks))).toBe("401 invalid_token");
  expect(await outcome(service.as(token).get("/v1/projects"))).toBe("401 invalid_token");
});

test("a token of a CI system is no sign-in, whatever its sub", async () => {
  const { admin, as } = await givenTrust({ permissions: ["projects:read"] });
  const { body } = await as({ sub: admin.userId }).get("/v1/api-keys/current");
  expect(body.data).toMatchObject({ type: "workflow", user_id: expect.stringMatching(/^workflow:/) });
});

test("an issuer that is removed from the stage is no longer accepted", async () => {
  const { as, webhooks } = await givenTrust();
  const given = process.env.OIDC_ISSUERS;
  process.env.OIDC_ISSUERS = JSON.stringify([{ name: "github", audience: AUDIENCE }]);
  try {
    expect(await outcome(as().get(webhooks))).toBe("401 invalid_token");
  } finally {
    process.env.OIDC_ISSUERS = given;
  }
});

test("an outage of the issuer is a 503 for its tokens alone, and ends with it", async () => {
  const down = await startCiSystem(`down-${randomBytes(4).toString("hex")}`);
  const { admin, webhooks, trusts } = await givenProject();
  await admin.api.post(trusts, down.trust);
  const other = await givenTrust();
  const published = { ...down.issuer.jwks };
  for (const broken of [{}, { keys: [{}] }, { message: "busy" }]) {
    down.issuer.jwks = broken as typeof down.issuer.jwks;
    const { status, body, headers } = await service.as(down.token()).get(webhooks);
    expect([status, body.error.code, headers.get("retry-after")]).toEqual([503, "service_unavailable", "1"]);
  }
  expect(await outcome(other.as().get(other.webhooks))).toBe(200);
  expect(await outcome(admin.api.get(webhooks))).toBe(200);
  down.issuer.jwks = published;
  fakeDate().advance(6);
  expect(await outcome(service.as(down.token()).get(webhooks))).toBe(200);
});

test("a full list of a repository costs a request without a project at most 25 read units, however long its conditions are", async () => {
  const { as, trust, repository_id } = await givenTrust();
  const { issuer } = ci.trust;
  const [row = {}] = await itemsOf("trustedWorkflows", {
    listed_under: `repository-by-age#${ci.issuer.url}#${repository_id}`,
  });
  const long = "\u{65e5}".repeat(240);
  const conditions = { ref: `refs/${long}`, environment: long, job_workflow_ref: `${long}@main`, event_name: "push" };
  const { status } = await trust({ issuer, ...conditions, repository_owner_id: "1".repeat(20) });
  expect(status).toBe(201);
  const [, stored] = await itemsOf("trustedWorkflows", { listed_under: row.listed_under });
  await putAll(
    "trustedWorkflows",
    Array.from({ length: 250 }, () => ({ ...stored, entry: randomUUID(), project_id: randomUUID() })),
  );
  const seen = watchDynamo();
  expect(await outcome(as().get("/v1/projects"))).toBe(200);
  const units = seen.map((each) => each.units);
  expect(Math.max(...units)).toBeLessThanOrEqual(25);
  restoreAws();
  interceptReads();
});

test("a trusted workflow that an earlier release stored with all fields in the list by age is matched by them", async () => {
  const { as, projectId, repository_id } = await givenTrust({ ref: "refs/heads/main" });
  const key = `#${ci.issuer.url}#${repository_id}`;
  const [full = {}] = await itemsOf("trustedWorkflows", { listed_under: `repository${key}` });
  await putAll("trustedWorkflows", [{ ...full, listed_under: `repository-by-age${key}`, entry: full.id }]);
  expect((await as().get("/v1/projects")).body.data).toMatchObject([{ id: projectId }]);
  expect(await outcome(as({ ref: "refs/heads/other" }).get("/v1/projects"))).toBe("401 workflow_not_trusted");
});

test.each([
  ["of the repository", [{ reason: "TableReadKeyRangeThroughputExceeded" }], "401 workflow_not_trusted"],
  ["without a reason", undefined, "503 service_unavailable"],
  ["of the table", [{ reason: "TableReadMaxOnDemandThroughputExceeded" }], "503 service_unavailable"],
  ["of the account", [{ reason: "TableReadAccountLimitExceeded" }], "503 service_unavailable"],
])("throttling %s has its own answer, with and without a project", async (_title, ThrottlingReasons, expected) => {
  const { as, webhooks } = await givenTrust();
  interceptDynamo(async ({ input }, send) => {
    if (!String(input.TableName).endsWith("-trusted-workflows")) return send();
    throw Object.assign(new Error("busy"), { name: "ProvisionedThroughputExceededException", ThrottlingReasons });
  });
  try {
    expect([await outcome(as().get("/v1/projects")), await outcome(as().get(webhooks))]).toEqual([expected, expected]);
    const { message } = (await as().get("/v1/projects")).body.error;
    if (expected.startsWith("401")) expect(message).toContain("name the project in their path");
  } finally {
    restoreAws();
  }
});

test("an outage of DynamoDB is a 503", async () => {
  const { as, webhooks } = await givenTrust();
  interceptDynamo(async ({ input }, send) => {
    const isTrusts = String(input.TableName).endsWith("-trusted-workflows");
    if (isTrusts) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    return send();
  });
  try {
    expect(await outcome(as().get(webhooks))).toBe("503 service_unavailable");
  } finally {
    restoreAws();
  }
});
