import { suppressions } from "../../lib/nag-suppressions.ts";
import { dev, SynthesizedStack } from "./synthesized.ts";

const stacks = (["dev", "prod", "everyOption", "otherForms", "console"] as const).map((name) => ({
  name,
  ...new SynthesizedStack(name).synthesis,
}));

test.each(stacks)("$name has no finding that is not acknowledged", ({ violations }) => {
  expect(violations).toEqual([]);
});

test("every acknowledgment belongs to a finding", () => {
  // With the values of `everyOption.env`, or without.
  const idOf = (id = "") =>
    id
      .replace(/cdk-hooks\w+-assets/, "cdk-<qualifier>-assets")
      .replace("arn:aws:s3", "arn:<AWS::Partition>:s3")
      .replace("111122223333", "<AWS::AccountId>")
      .replace("eu-west-1", "<AWS::Region>");
  const used = new Set(
    stacks.flatMap(({ acknowledged }) => acknowledged.map(({ acknowledgedId }) => idOf(acknowledgedId))),
  );
  expect(suppressions.map(({ id }) => id).sort()).toEqual([...used].sort());
});

test("only methods that reach no function, and the one for anyone, have no authorization", () => {
  const open = stacks.flatMap(({ acknowledged }) =>
    acknowledged.filter(({ ruleName }) => ruleName === "AwsSolutions-APIG4"),
  );
  const paths = open.flatMap(({ violatingConstructs }) =>
    violatingConstructs.map(({ constructPath }) => constructPath),
  );
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths)
    expect(path).toMatch(
      /\/(ANY|OPTIONS|(revoke|sign-ins)\/POST|(oauth-protected-resource|http-message-signatures-directory)\/GET)\/Resource$/,
    );
});

test("a finding that is not acknowledged is reported", () => {
  const { violations } = new SynthesizedStack("devWithBucket").synthesis;
  expect(violations.map(({ ruleName }) => ruleName)).toContain("AwsSolutions-S1");
  expect(dev.synthesis.violations).toEqual([]);
});
