import { randomBytes } from "node:crypto";
import { canonicalUuid, timeOrderedUuid } from "../../../../functions/foundation/platform/uuid.ts";

describe("a time-ordered UUID", () => {
  test("is a UUIDv7 of the given time", () => {
    // The example of RFC 9562, appendix A.6: https://www.rfc-editor.org/rfc/rfc9562#appendix-A.6
    const random = Buffer.from("00000000000000cc18c4dc0c0c07398f", "hex");
    expect(timeOrderedUuid(0x017f22e279b0, random)).toMatch(
      /^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  test("depends only on the time and the random bytes", () => {
    const random = randomBytes(16);
    expect(timeOrderedUuid(1_767_323_045_678, random)).toBe(timeOrderedUuid(1_767_323_045_678, Buffer.from(random)));
    expect(timeOrderedUuid(1_767_323_045_678, random)).not.toBe(timeOrderedUuid(1_767_323_045_678, randomBytes(16)));
  });

  test("sorts by time, independent of the random bytes", () => {
    const times = [0, 1, 1_000, 1_767_323_045_677, 1_767_323_045_678, 253_402_300_799_999];
    const ids = times.map((time, index) => timeOrderedUuid(time, Buffer.alloc(16, 255 - index)));
    expect([...ids].sort()).toEqual(ids);
  });

  test("contains 73 of the random bits", () => {
    const ids = Array.from({ length: 10_000 }, () => timeOrderedUuid(0, randomBytes(16)));
    expect(new Set(ids).size).toBe(ids.length);
    const [none = "", all = ""] = [0x00, 0xff].map((byte) => timeOrderedUuid(0, Buffer.alloc(16, byte)));
    expect(none).toBe("00000000-0000-7000-8000-000000000000");
    // The first random bit is always 0, because the package `uuid` reserves it for a counter.
    expect(all).toBe("00000000-0000-77ff-bfff-ffffffffffff");
  });
});

test.each<[unknown, string | undefined]>([
  ["01930000-0000-7000-8000-00000000d301", "01930000-0000-7000-8000-00000000d301"],
  ["0B0E7D53-3A3E-4B5A-9C7E-2F1D8F0A6C11", "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11"],
  ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"],
  ["", undefined],
  ["0193000000007000800000000000d301", undefined],
  ["{01930000-0000-7000-8000-00000000d301}", undefined],
  ["urn:uuid:01930000-0000-7000-8000-00000000d301", undefined],
  [" 01930000-0000-7000-8000-00000000d301", undefined],
  ["01930000-0000-7000-8000-00000000d301\n", undefined],
  ["01930000-0000-7000-8000-00000000d30g", undefined],
  ["01930000-0000-7000-8000-00000000d3011", undefined],
  ["#count", undefined],
  [42, undefined],
  [["01930000-0000-7000-8000-00000000d301"], undefined],
  [null, undefined],
  [undefined, undefined],
])("canonicalUuid(%p) is %p", (text, canonical) => {
  expect(canonicalUuid(text)).toBe(canonical);
});
