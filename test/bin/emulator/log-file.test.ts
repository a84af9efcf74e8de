import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jest } from "@jest/globals";
import { logToFile } from "../../../bin/emulator/log-file.ts";
import { logSink } from "../../../functions/foundation/platform/log.ts";
import { eventually } from "../../support/eventually.ts";
import { needs } from "../../support/optional-program.ts";

const withFullDevice = needs({ name: "/dev/full", isInstalled: existsSync("/dev/full") });

withFullDevice.test(
  "a full disk is reported once and stops nothing, and lines are written again when it has room",
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "log-"));
    const path = join(dataDir, "service.log");
    // Every write to this device fails as on a full disk.
    symlinkSync("/dev/full", path);
    const { write } = logSink;
    const reported = jest.spyOn(console, "error").mockImplementation(() => {});
    try {
      logToFile(dataDir);
      logSink.write("info", { message: "lost" });
      await eventually(() => expect(reported).toHaveBeenCalledTimes(1));
      expect(reported.mock.calls[0]?.[0]).toBe(`The log ${path} is incomplete: ENOSPC: no space left on device, write`);
      rmSync(path);
      await eventually(() => {
        logSink.write("info", { message: "written" });
        expect(readFileSync(path, "utf8")).toContain("written");
      });
      expect(reported).toHaveBeenCalledTimes(1);
    } finally {
      logSink.write = write;
      reported.mockRestore();
      rmSync(dataDir, { recursive: true });
    }
  },
);
