import { once } from "node:events";
import net from "node:net";
import { unreachable } from "../../../bin/command/unreachable.ts";

const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED", address: "127.0.0.1", port: 9 });
const unknown = Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND", hostname: "sqs.invalid" });

const [AT_ADDRESS, AT_NAME, AT_UNKNOWN] = ["http://127.0.0.1:9", "http://localhost:9", "http://sqs.invalid:9"];

test.each<[string, Record<string, string>, Error, string]>([
  ["an address", { AWS_ENDPOINT_URL_SQS: AT_ADDRESS }, refused, AT_ADDRESS],
  ["a name that was resolved", { AWS_ENDPOINT_URL_SQS: AT_NAME }, refused, AT_NAME],
  ["a name that does not resolve", { AWS_ENDPOINT_URL_SQS: AT_UNKNOWN }, unknown, AT_UNKNOWN],
  [
    "one of two addresses",
    { AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:8", AWS_ENDPOINT_URL_SQS: AT_ADDRESS },
    refused,
    AT_ADDRESS,
  ],
  [
    "an address beside a name",
    { AWS_ENDPOINT_URL_DYNAMODB: AT_NAME, AWS_ENDPOINT_URL_SQS: AT_ADDRESS },
    refused,
    AT_ADDRESS,
  ],
  ["one address of a name", { AWS_ENDPOINT_URL_SQS: AT_NAME }, new AggregateError([refused]), AT_NAME],
  ["a cause", { AWS_ENDPOINT_URL_SQS: AT_ADDRESS }, new TypeError("fetch failed", { cause: refused }), AT_ADDRESS],
])("what could not be reached is named by its setting: %s", (_, env, error, url) => {
  const { code } = error === unknown ? unknown : refused;
  expect(unreachable(error, env)).toBe(
    `Could not reach ${url} (${code}). Start the service at this address, or correct AWS_ENDPOINT_URL_SQS.`,
  );
});

test.each<[Error, string]>([
  [refused, "127.0.0.1:9 (ECONNREFUSED)"],
  [unknown, "sqs.invalid (ENOTFOUND)"],
  [Object.assign(new Error("read"), { code: "ECONNRESET" }), "AWS (ECONNRESET)"],
])("what could not be reached without a setting is named by its address: %s", (error, target) => {
  expect(unreachable(error, { AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:90", OTHER: "http://127.0.0.1:9" })).toBe(
    `Could not reach ${target}. Check the network, AWS_REGION and AWS_ENDPOINT_URL.`,
  );
});

test("the error of a real connection has what the message needs", async () => {
  const [error] = await once(
    net.connect({ host: "127.0.0.1", port: 9 }).on("connect", () => {}),
    "error",
  );
  expect(unreachable(error, {})).toContain("127.0.0.1:9 (ECONNREFUSED)");
});

test.each([[new Error("a fault")], [Object.assign(new Error("no file"), { code: "ENOENT" })], ["text"], [undefined]])(
  "another error is none of a connection: %s",
  (error) => {
    expect(unreachable(error)).toBeUndefined();
  },
);
