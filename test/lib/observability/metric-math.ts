/*
 * Evaluates the metric math of alarms for one period.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
 *
 * A value is undefined when it has no data. Arithmetic counts an operand without data as 0 if the other one has data.
 * AWS does not document comparisons without data; here they have no data either, which is the case in which an alarm
 * that depends on one stays silent.
 */

export interface Data {
  /** Returns the value of a metric by its id; undefined = no data. */
  metricOf: (id: string) => number | undefined;
  /** Returns the applied quota of a usage metric by its id. */
  quotaOf: (id: string) => number;
}

type Value = number | undefined;

type Operator = (left: Value, right: Value) => Value;

const arithmetic =
  (compute: (left: number, right: number) => number): Operator =>
  (left, right) =>
    left === undefined && right === undefined ? undefined : compute(left ?? 0, right ?? 0);

const logical =
  (compute: (left: number, right: number) => boolean): Operator =>
  (left, right) =>
    left === undefined || right === undefined ? undefined : Number(compute(left, right));

/** Operators by precedence, the weakest first. */
const levels: Record<string, Operator>[] = [
  { OR: logical((left, right) => left !== 0 || right !== 0) },
  { AND: logical((left, right) => left !== 0 && right !== 0) },
  {
    "<": logical((left, right) => left < right),
    ">": logical((left, right) => left > right),
    "<=": logical((left, right) => left <= right),
    ">=": logical((left, right) => left >= right),
  },
  { "+": arithmetic((left, right) => left + right), "-": arithmetic((left, right) => left - right) },
  { "*": arithmetic((left, right) => left * right), "/": arithmetic((left, right) => left / right) },
];

/**
 * Returns the value of an expression.
 * @throws Error for syntax and functions that no alarm uses
 */
export function evaluate(expression: string, { metricOf, quotaOf }: Data): Value {
  const tokens = expression.match(/\w+|<=|>=|\S/g) ?? [];
  const take = (wanted?: string): string => {
    const token = tokens.shift() ?? "";
    if (wanted !== undefined && token !== wanted) throw new Error(`${expression}: "${token}" instead of "${wanted}"`);
    return token;
  };
  const binary = (level: number): Value => {
    const operators = levels[level];
    if (operators === undefined) return operand();
    let left = binary(level + 1);
    for (let operator = operators[tokens[0] ?? ""]; operator; operator = operators[tokens[0] ?? ""]) {
      take();
      left = operator(left, binary(level + 1));
    }
    return left;
  };
  const operand = (): Value => {
    const token = take();
    if (token === "(") return closed(binary(0));
    if (/^\d/.test(token)) return Number(token);
    if (tokens[0] !== "(") return metricOf(token);
    take("(");
    if (token === "SERVICE_QUOTA") return closed(quotaOf(take()));
    if (token !== "IF") throw new Error(`${expression}: unknown function ${token}`);
    const condition = binary(0);
    take(",");
    const yes = binary(0);
    take(",");
    const no = closed(binary(0));
    if (condition === undefined) return undefined;
    return condition === 0 ? no : yes;
  };
  const closed = (value: Value): Value => {
    take(")");
    return value;
  };
  const value = binary(0);
  if (tokens.length > 0) throw new Error(`${expression}: "${tokens.join(" ")}" is left over`);
  return value;
}
