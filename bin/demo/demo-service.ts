import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LocalSettings } from "../command/settings.ts";
import type { RunningService } from "../emulator/service.ts";
import { seedDemoUser } from "./demo-user.ts";

/** Starts a service for a demo, with the demo user. Its data is deleted when the process ends. @throws StartError */
export async function startDemoService(settings: LocalSettings): Promise<RunningService> {
  const { startService } = await import("../emulator/service.ts");
  const dataDir = mkdtempSync(join(tmpdir(), "demo-"));
  process.once("exit", () => rmSync(dataDir, { recursive: true, force: true }));
  const service = await startService({ ...settings, dataDir, port: 0, sqsPort: 0 });
  await seedDemoUser();
  return service;
}
