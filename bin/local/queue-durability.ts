import { type FileHandle, open } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import type { DatabaseSync } from "node:sqlite";

/*
 * Makes the embedded SQS engine flush to the disk without delaying other calls. fauxqs (2.4.1) flushes each write of its SQLite
 * file in its own thread: six flushes per event, during which it handles no call. Here it writes without a flush, which survives the
 * end of the process, `kill -9` included, and each response waits for a flush in another thread, which survives a power loss too.
 * https://www.sqlite.org/pragma.html#pragma_synchronous
 */

/** fauxqs's object for its SQLite file. */
interface Persistence {
  db: DatabaseSync;
  load(...stores: unknown[]): void;
  close(): void;
}

/** fauxqs's object for the calls of the SQS API. */
interface Router {
  store: { persistence?: Persistence };
  handle(request: { headers: IncomingHttpHeaders }, reply: unknown): Promise<unknown>;
}

/**
 * Calls whose effect may be lost in a power loss: the messages are received again. SQS does not exclude that either.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
 */
const UNFLUSHED = new Set(
  [
    "ReceiveMessage",
    "DeleteMessage",
    "DeleteMessageBatch",
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
  ].map((action) => `AmazonSQS.${action}`),
);

const flushes = new WeakMap<Persistence, Flush>();
let installing: Promise<void> | undefined;

/** Installs the flushes in fauxqs, once for all engines of this thread. In-memory engines flush nothing. */
export function flushInBackground(): Promise<void> {
  installing ??= install();
  return installing;
}

async function install(): Promise<void> {
  const { PersistenceManager }: { PersistenceManager: { prototype: Persistence } } = await internal("persistence.js");
  const { SqsRouter }: { SqsRouter: { prototype: Router } } = await internal("sqs/sqsRouter.js");
  const { load, close } = PersistenceManager.prototype;
  const { handle } = SqsRouter.prototype;
  PersistenceManager.prototype.load = function (...stores) {
    this.db.exec("PRAGMA synchronous = NORMAL");
    Reflect.apply(load, this, stores);
    flushes.set(
      this,
      createFlush(() => open(`${this.db.location()}-wal`, "r+")),
    );
  };
  PersistenceManager.prototype.close = function () {
    flushes.get(this)?.end();
    Reflect.apply(close, this, []);
  };
  SqsRouter.prototype.handle = async function (request, reply) {
    const response = await Reflect.apply(handle, this, [request, reply]);
    const { persistence } = this.store;
    if (persistence && !UNFLUSHED.has(String(request.headers["x-amz-target"]))) await flushes.get(persistence)?.run();
    return response;
  };
}

const internal = (path: string) => import(new URL(path, import.meta.resolve("fauxqs")).href);

type SyncedFile = Pick<FileHandle, "datasync" | "close">;

export interface Flush {
  /** Resolves when all that was written before the call is on the disk. Concurrent calls share a flush. */
  run(): Promise<void>;
  /** Closes the file. */
  end(): void;
}

/** @param openFile opens the file; called again after it failed */
export function createFlush(openFile: () => Promise<SyncedFile>): Flush {
  let file: Promise<SyncedFile> | undefined;
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const start = async () => {
    next = undefined;
    file ??= openFile().catch((error: unknown) => {
      file = undefined;
      throw error;
    });
    running = file.then((opened) => opened.datasync());
    await running;
  };
  return {
    // A flush that is running may have begun before the write.
    run() {
      next ??= running.then(start, start);
      return next;
    },
    end() {
      void file?.then((opened) => opened.close()).catch(() => {});
    },
  };
}
