import { logSink } from "../../functions/foundation/platform/log.ts";
import { revocationInput, handler as revokeAll } from "../../functions/identity/api-keys/revoke-all.ts";
import { checkInput } from "../command/check-input.ts";
import { command, UsageError } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { settingRows } from "../command/settings.ts";

const help = {
  name: "npm run --silent keys",
  about: `Deletes all API keys of a user of the running service. Requests with them are rejected from then on.
The user can create new keys as long as the identity provider issues tokens.`,
  words: "revoke-all",
  options: {
    user: { value: "<id>", about: "user id, any text", isRequired: true },
  },
  settings: settingRows("DATA_DIR", "AWS_ENDPOINT_URL_DYNAMODB"),
  examples: ["npm run --silent keys -- revoke-all --user bob"],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ user }, [verb, ...more]) => {
    if (verb !== "revoke-all" || more.length > 0) throw new UsageError("Pass revoke-all.");
    const input = { user_id: user };
    checkInput(revocationInput, input, { user_id: "--user" });
    await connect();
    logSink.write = () => {};
    const { revoked } = await revokeAll(input);
    return `${revoked} API ${revoked === 1 ? "key" : "keys"} deleted`;
  });
}
