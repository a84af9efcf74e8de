import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../../client/src/client.ts";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";
import { note, printable } from "../terminal/terminal.ts";
import { isTemporary } from "./api.ts";

const pasteAdvice = "Or create an API key in the console, and pass it: svc login --with-token";

/**
 * Signs this machine in: shows a code, and waits until a person has confirmed it in the console.
 * @param wait waits between two questions, in milliseconds
 * @returns the key that this machine got
 * @throws CommandError when the user denies it, or does not confirm it within ten minutes
 */
export async function signInByCode(api: Client, wait: (ms: number) => Promise<void> = sleep): Promise<string> {
  const client = `svc on ${hostname()}`.slice(0, 100);
  const { device_code = "", user_code, verification_uri, interval = 5 } = await api.requestSignIn({ client });
  const where = verification_uri ?? "the console of your platform";
  note(`To sign in as yourself, open ${printable(where)}\nand type the code  ${user_code}  there. Waiting for you …`);
  for (let pause = interval * 1000; ; ) {
    await wait(pause);
    const { status, api_key } = await ask(api, device_code);
    if (status === "approved" && api_key) return api_key.key;
    if (status === "denied") throw refused("The sign-in was denied, or the person may not give this key.");
    if (status === "expired") throw refused("The code has expired: it was not confirmed within ten minutes.");
    // RFC 8628, section 3.5.
    if (status === "slow_down") pause += 5_000;
  }
}

const refused = (message: string) =>
  new CommandError(exitCodes.signedOut, message, `Run svc login again. ${pasteAdvice}`);

/** A service that is busy is asked again. */
async function ask(api: Client, device_code: string): ReturnType<Client["requestSignIn"]> {
  try {
    return await api.requestSignIn({ device_code });
  } catch (error) {
    if (isTemporary(error)) return { status: "pending" };
    throw error;
  }
}
