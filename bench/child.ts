import { fork, type Serializable } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";

/* Processes of a benchmark, which end with it: each is stopped at the end or after a failure, and exits when its parent does. */

export interface Child<Ready> {
  /** The first message of the process. */
  ready: Ready;
  /**
   * Sends a message and returns the response. One request at a time.
   * @throws Error when the process exits or does not respond in time
   */
  request<Reply>(message: Serializable): Promise<Reply>;
  end(): Promise<void>;
}

interface Options {
  args?: string[];
  /** Max wait for a message; 60 s unless given. */
  timeoutMs?: number;
}

/**
 * Starts a process and waits for its first message. It has to exit on `disconnect`.
 * @throws Error when it exits or sends no message in time; it is stopped then
 */
export async function startChild<Ready>(
  file: string,
  { args = [], timeoutMs = 60_000 }: Options = {},
): Promise<Child<Ready>> {
  const name = [basename(file), ...args].join(" ");
  const child = fork(file, args, {
    // Without the program that ends this process with its parent: it would end the child at once, whose input is empty.
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  async function nextMessage<Message>(): Promise<Message> {
    const waiting = new AbortController();
    const signal = AbortSignal.any([waiting.signal, AbortSignal.timeout(timeoutMs)]);
    const exit = ended.then(([code, killedBy]) => {
      throw new Error(`The process ${name} exited with ${killedBy ?? code}.`);
    });
    const message = once(child, "message", { signal }).catch(() => {
      throw new Error(`The process ${name} did not respond within ${timeoutMs / 1000} s.`);
    });
    try {
      return (await Promise.race([message, exit]))[0];
    } finally {
      waiting.abort();
    }
  }
  const end = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  try {
    return {
      ready: await nextMessage<Ready>(),
      request(message) {
        child.send(message);
        return nextMessage();
      },
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** What `withStarted` ends: a process, or a service with its engines. */
export interface Endable {
  end(): Promise<void>;
}

/** Waits for a start, and remembers what has to be ended. */
export type Start = <Started extends Endable>(starting: Started | Promise<Started>) => Promise<Started>;

/**
 * Calls `run` with a function that starts something, and ends everything that was started, the last first, also when `run` or a
 * start fails.
 * @throws the first error of an end, after everything was ended
 */
export async function withStarted<Result>(run: (start: Start) => Promise<Result>): Promise<Result> {
  const running: Endable[] = [];
  const failures: unknown[] = [];
  try {
    return await run(async (starting) => {
      const started = await starting;
      running.unshift(started);
      return started;
    });
  } finally {
    for (const each of running) await each.end().catch((error: unknown) => failures.push(error));
    // biome-ignore lint/correctness/noUnsafeFinally: an end that fails leaves something running, whatever the result is
    if (failures.length > 0) throw failures[0];
  }
}
