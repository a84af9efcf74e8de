import { ApiError, SettingError } from "../../../../functions/foundation/platform/errors.ts";

test("the body of an ApiError has code, message, request id and details, and never the cause", () => {
  const details = [{ path: "name", message: "is required" }];
  const error = new ApiError("validation_error", "The input is not valid.", {
    details,
    headers: { "Retry-After": "1" },
    cause: new Error("internal detail"),
  });
  expect(JSON.parse(error.toBody("request-1"))).toEqual({
    error: { code: "validation_error", message: "The input is not valid.", request_id: "request-1", details },
  });
  expect(error).toMatchObject({ name: "ApiError", headers: { "Retry-After": "1" }, cause: expect.any(Error) });
});

test("the body of an ApiError without details has no field `details`", () => {
  expect(JSON.parse(new ApiError("conflict", "Taken.").toBody("request-1"))).toEqual({
    error: { code: "conflict", message: "Taken.", request_id: "request-1" },
  });
});

test("a SettingError has its own name", () => {
  expect(new SettingError("X is not set")).toMatchObject({ name: "SettingError", message: "X is not set" });
});
