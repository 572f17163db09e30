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
/** Words for people are no behaviour: what a log says may change. */
const REPORTS = /^(?:await )?(?:log\.|process\.std(?:out|err)\.|console\.)/;
/** From here on a number is a bound or a time, which one more or less would not change by much. */
const LARGE = 100;

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
        const swapped = SWAPPED[operator];
        if (swapped === undefined || !isNode(left) || !isNode(right)) break;
        if (operator === "+" && (isText(left) || isText(right))) break;
        const at = text.indexOf(operator, left.end);
        add("swapped operator", { start: at, end: at + operator.length }, swapped);
        break;
      }
      case "ExpressionStatement":
        if (REPORTS.test(text.slice(node.start, node.end))) return;
        add("removed statement", node, ";");
        break;
      case "ReturnStatement":
      case "ContinueStatement":
      case "BreakStatement":
      case "ThrowStatement":
        if (isEarly(parents)) add("removed early end", node, ";");
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
    else if (typeof value === "number") add("other literal", node, String(value >= LARGE ? 0 : value + 1));
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
