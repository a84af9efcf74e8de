import {
  allOf,
  changing,
  isAsRead,
  onlyIf,
  selecting,
  when,
} from "../../../../functions/foundation/platform/expression.ts";

test("a change sets, removes and adds attributes under a condition, with a name for each value", () => {
  const change = changing({
    set: { url: "https://a.example", updated_by: undefined, created_at: when`if_not_exists(created_at, ${"now"})` },
    remove: ["disabled_at"],
    add: { count: -1 },
    when: when`attribute_exists(id) AND #url = ${"https://b.example"}`,
  });
  expect(change).toEqual({
    UpdateExpression: "SET #url = :v0, #created_at = if_not_exists(created_at, :v1) REMOVE #disabled_at ADD #count :v2",
    ConditionExpression: "attribute_exists(id) AND #url = :v3",
    ExpressionAttributeNames: {
      "#url": "url",
      "#created_at": "created_at",
      "#disabled_at": "disabled_at",
      "#count": "count",
    },
    ExpressionAttributeValues: { ":v0": "https://a.example", ":v1": "now", ":v2": -1, ":v3": "https://b.example" },
  });
});

test("a change without a condition or values has no fields for them", () => {
  expect(changing({ remove: ["a"] })).toEqual({
    UpdateExpression: "REMOVE #a",
    ExpressionAttributeNames: { "#a": "a" },
  });
});

test.each([
  [allOf(when`a = ${1}`, undefined, false, when`b = ${2}`), "a = :v0 AND b = :v1", { ":v0": 1, ":v1": 2 }],
  [when`attribute_exists(id) AND ${when`a = ${1}`}`, "attribute_exists(id) AND a = :v0", { ":v0": 1 }],
  [isAsRead("a", 0), "#a = :v0", { ":v0": 0 }],
  [isAsRead("a", undefined), "attribute_not_exists(#a)", undefined],
])("a condition %# has its values in their order", (condition, text, values) => {
  const { ConditionExpression, ExpressionAttributeValues } = onlyIf(condition);
  expect([ConditionExpression, ExpressionAttributeValues]).toEqual([text, values]);
});

test("the key of a query is a condition", () => {
  expect(selecting(when`#owner = ${"a"} AND id > ${"b"}`)).toEqual({
    KeyConditionExpression: "#owner = :v0 AND id > :v1",
    ExpressionAttributeNames: { "#owner": "owner" },
    ExpressionAttributeValues: { ":v0": "a", ":v1": "b" },
  });
});

test("a query has a filter and attributes only where they are given, and values in the order of the whole", () => {
  expect(selecting(when`id = ${"a"}`, { filter: when`#status = ${"held"}`, attributes: ["id", "status"] })).toEqual({
    KeyConditionExpression: "id = :v0",
    FilterExpression: "#status = :v1",
    ProjectionExpression: "#id, #status",
    ExpressionAttributeNames: { "#id": "id", "#status": "status" },
    ExpressionAttributeValues: { ":v0": "a", ":v1": "held" },
  });
  expect(Object.keys(selecting(when`id = ${"a"}`, { filter: allOf(undefined) }))).not.toContain("FilterExpression");
});
