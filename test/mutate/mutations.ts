import { parseAst } from "vitest/node";

/** One small change of a program, of the kind that a slip of the hand makes. */
export interface Mutation {
  /** From 1. */
  readonly line: number;
  /** Characters of the text that are replaced. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** What kind of change it is. */
  readonly operator: string;
}

/** A node of the syntax tree (ESTree with TypeScript's own). */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** What stands for a comparison or a sum in a mutant. `+` may join texts, and is left alone where one is in sight. */
const SWAPPED: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "&&": "||",
  "||": "&&",
};
/** Nodes of TypeScript that hold code. All others of its own are types, and change nothing when a program runs. */
const TYPED_CODE = new Set(["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"]);
/**
 * Calls that no test of behaviour can judge: what a log says, and at which level; checks of what cannot be; whether a timer
 * alone would keep the process from its end.
 */
const UNJUDGED =
  /^(?:(?:\w+\.)*log\.\w+|process\.std(?:out|err)\.\w+|console\.\w+|assert(?:\.\w+)?|[\w.?]+\.unref)$/;
/** From here on a number is a bound or a time, which one more or less would not change by much. */
const LARGE = 10;
/** What stands in for an element that a list always has: the type of `list[at]` asks for it, and nothing ever takes it. */
const ELEMENT = /^\(*[\w.?!]+\[(?!["'\d]).*\](?:\??\.\w+)*\)*$/;
/** A product or sum of numbers alone is one number: `8 * 1024`. */
const ARITHMETIC = new Set(["+", "-", "*", "/"]);

/**
 * Every mutation of a module that keeps to one line, in the order of its text: negated conditions, swapped operators,
 * removed statements and early ends, other literals. Pure. Throws what the parser throws for a text that is no module.
 */
export function mutationsOf(text: string): Mutation[] {
  const found: Mutation[] = [];
  const program = parseAst(text, { lang: "ts" }) as unknown as Node;
  const lineAt = lineCounter(text);
  const add = (operator: string, node: Pick<Node, "start" | "end">, replacement: string): void => {
    const { start, end } = node;
    const original = text.slice(start, end);
    if (original.includes("\n") || original === replacement) return;
    found.push({ line: lineAt(start), start, end, replacement, operator });
  };
  const negate = (test: unknown): void => {
    if (!isNode(test)) return;
    const words = text.slice(test.start, test.end);
    if (test.type === "UnaryExpression") add("negated condition", test, words.slice(1));
    // A comparison has a mutation of its own.
    else if (!(test.type === "BinaryExpression" && String(test["operator"]) in SWAPPED))
      add("negated condition", test, `!(${words})`);
  };
  const visit = (node: Node, parents: readonly Node[]): void => {
    const number = numberOf(node);
    if (number !== undefined) return add("other literal", node, String(number >= LARGE ? 0 : number + 1));
    if (isUnjudged(text, node)) return;
    switch (node.type) {
      case "IfStatement":
      case "ConditionalExpression":
      case "WhileStatement":
        negate(node["test"]);
        break;
      case "BinaryExpression":
      case "LogicalExpression": {
        const { left, right } = node;
        const operator = String(node["operator"]);
        if (operator === "??" && isNode(left) && isNode(right) && right.type === "Literal")
          if (ELEMENT.test(text.slice(left.start, left.end))) return visit(left, [...parents, node]);
        const swapped = SWAPPED[operator];
        if (swapped === undefined || !isNode(left) || !isNode(right)) break;
        if (operator === "+" && (isText(left) || isText(right))) break;
        const at = text.indexOf(operator, left.end);
        add("swapped operator", { start: at, end: at + operator.length }, swapped);
        break;
      }
      case "ExpressionStatement":
        // An empty statement below an `if` would not compile.
        if (!isUnjudged(text, node)) add("removed statement", node, "{}");
        break;
      case "ReturnStatement":
      case "ContinueStatement":
      case "BreakStatement":
      case "ThrowStatement":
        if (isEarly(parents)) add("removed early end", node, "{}");
        break;
      case "Literal":
        other(node, parents.at(-1));
        break;
    }
    for (const child of childrenOf(node)) visit(child, [...parents, node]);
  };
  const other = (node: Node, parent: Node | undefined): void => {
    const { value } = node;
    if (typeof value === "boolean") add("other literal", node, String(!value));
    // One without a space is a word that programs read: a kind, a state, a code.
    else if (typeof value === "string" && /^[\w:/.-]+$/.test(value) && parent?.["key"] !== node)
      add("other literal", node, '""');
  };
  visit(program, []);
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

/** The text of a module with one of its mutations. Pure. */
export function mutate(text: string, { start, end, replacement }: Mutation): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** How a mutation reads: the line as it is and as it becomes. Pure. */
export function describeMutation(text: string, mutation: Mutation): string {
  const lines = (code: string): string => (code.split("\n")[mutation.line - 1] ?? "").trim();
  return `${mutation.operator}: ${lines(text)}  →  ${lines(mutate(text, mutation))}`;
}

/** Draws `count` items without repetition; the same seed draws the same of the same list. Pure. */
export function sample<T>(items: readonly T[], count: number, seed: number): T[] {
  const random = randomOf(seed);
  const rest = [...items];
  const drawn: T[] = [];
  while (drawn.length < count && rest.length > 0) {
    drawn.push(...rest.splice(Math.floor(random() * rest.length), 1));
  }
  return drawn;
}

/** Numbers in [0, 1), by Mulberry32 (https://gist.github.com/tommyettinger/46a874533244883189143505d203312c). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Whether what ends here ends before the code does that it stands in: below an `if`, or amid a loop. */
function isEarly(parents: readonly Node[]): boolean {
  const inner = parents.findLastIndex(({ type }) => /Function/.test(type));
  return parents.slice(inner + 1).some(({ type }) => type === "IfStatement");
}

/** What an expression of numbers alone comes to. */
function numberOf(node: Node): number | undefined {
  if (node.type === "Literal") return typeof node["value"] === "number" ? node["value"] : undefined;
  const { left, right, operator } = node;
  if (
    node.type !== "BinaryExpression" ||
    !ARITHMETIC.has(String(operator)) ||
    !isNode(left) ||
    !isNode(right)
  )
    return undefined;
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a === undefined || b === undefined) return undefined;
  return operator === "+" ? a + b : operator === "-" ? a - b : operator === "*" ? a * b : a / b;
}

/** Whether a node is a call, or a statement of one, that no test can judge. */
function isUnjudged(text: string, node: Node): boolean {
  const inner = node["expression"] ?? node["argument"];
  if (/^(?:ExpressionStatement|AwaitExpression|UnaryExpression)$/.test(node.type))
    return isNode(inner) && isUnjudged(text, inner);
  const { callee } = node;
  return (
    node.type === "CallExpression" && isNode(callee) && UNJUDGED.test(text.slice(callee.start, callee.end))
  );
}

function isText(node: Node): boolean {
  return typeof node["value"] === "string" || node.type === "TemplateLiteral";
}

/** The nodes below one that run. Imports and exports from elsewhere name modules, and types do nothing. */
function childrenOf(node: Node): Node[] {
  if (
    /^(?:Import|ExportAll)/.test(node.type) ||
    (node.type === "ExportNamedDeclaration" && isNode(node["source"]))
  )
    return [];
  const values = Object.values(node).flatMap((value) =>
    Array.isArray(value) ? (value as unknown[]) : [value],
  );
  return values.filter(isNode).filter(({ type }) => !type.startsWith("TS") || TYPED_CODE.has(type));
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/** Line of a place in a text, from 1. */
function lineCounter(text: string): (at: number) => number {
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index);
  return (at) => 1 + ends.filter((end) => end < at).length;
}
