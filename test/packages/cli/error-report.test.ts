import { jest } from "@jest/globals";
import { reportError } from "../../../packages/cli/src/error-report.ts";
import { ApiError } from "../../../packages/client/src/errors.ts";

/* What a failed command of `svc` prints. */

afterEach(() => jest.restoreAllMocks());

test("not_found names the command that lists each kind of resource, and returns exit code 4", () => {
  let printed = "";
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
  const error = new ApiError(404, { code: "not_found", message: "No API key has this id.", request_id: "r-1" });
  expect(reportError(error)).toBe(4);
  expect(printed).toContain("No API key has this id. (not_found, request r-1)");
  for (const kind of ["projects", "keys", "webhooks", "deliveries"]) expect(printed).toContain(`svc ${kind} list`);
});
