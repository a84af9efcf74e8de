import { parentPort, workerData } from "node:worker_threads";
import { startQueueEngine } from "./queue-engine.ts";

/* The thread of the embedded SQS engine (engines.ts). It posts the endpoint when it has started. Any message stops it. */

const { port, dataDir }: { port: number; dataDir: string | undefined } = workerData;
const server = await startQueueEngine(port, dataDir);
parentPort?.once("message", () => server.stop());
parentPort?.postMessage(`http://127.0.0.1:${server.port}`);
