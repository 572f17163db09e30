import { lazyModule } from "../../lib/lazy-module.ts";

const htmlparser = lazyModule((load) => load("htmlparser2") as typeof import("htmlparser2"));

/** A node of an HTML or XML document: text, or an element. Character references (`&amp;`) are resolved. */
export type MarkupNode = string | MarkupElement;

/** An element. HTML names are lower-case, XML names as written, with their prefix. */
export interface MarkupElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly MarkupNode[];
}

/** Thrown for a document nested beyond any sensible depth, before it costs more. */
export class MarkupTooDeep extends Error {
  override readonly name = "MarkupTooDeep";
}

/** Deeper elements become children of their ancestor at this depth, so that recursion over the tree is safe. */
const DEPTH_MAX = 200;
/**
 * Open elements at most. Thousands occur (unclosed `<font>`). The parser scans all of them at each tag: 200,000 took half a
 * minute.
 */
const OPEN_MAX = 10_000;

interface Growing {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: MarkupNode[];
}

/**
 * Parses HTML as leniently as browsers, or XML without DTDs: declared entities stay unresolved. Returns a root without a
 * name. Throws `MarkupTooDeep`.
 */
export function parseMarkup(text: string, kind: "html" | "xml"): MarkupElement {
  const root: Growing = { name: "", attributes: {}, children: [] };
  const open: Growing[] = [root];
  const { Parser } = htmlparser();
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (open.length > OPEN_MAX) throw new MarkupTooDeep(`more than ${OPEN_MAX} elements in each other`);
        const element: Growing = { name, attributes, children: [] };
        (open[Math.min(open.length, DEPTH_MAX) - 1] ?? root).children.push(element);
        open.push(element);
      },
      ontext: (piece) => {
        // Below the depth limit an element is its parent's sibling, so its text must stay in it.
        const { children } = open.at(-1) ?? root;
        const last = children.at(-1);
        if (typeof last === "string") children[children.length - 1] = last + piece;
        else children.push(piece);
      },
      onclosetag: () => {
        if (open.length > 1) open.pop();
      },
    },
    { xmlMode: kind === "xml", decodeEntities: true },
  );
  parser.end(text);
  return root;
}

/** Yields the descendants with one of these names, in document order. */
export function* elementsBelow(
  { children }: MarkupElement,
  names: ReadonlySet<string>,
): Generator<MarkupElement> {
  for (const child of children) {
    if (typeof child === "string") continue;
    if (names.has(child.name)) yield child;
    yield* elementsBelow(child, names);
  }
}

/** Returns the first descendant with this name. */
export function firstBelow(element: MarkupElement, name: string): MarkupElement | undefined {
  return elementsBelow(element, new Set([name])).next().value ?? undefined;
}

/** Returns the children with this name. */
export function childrenNamed({ children }: MarkupElement, name: string): MarkupElement[] {
  return children.filter((child): child is MarkupElement => typeof child !== "string" && child.name === name);
}

/** Returns the text of a node and its descendants, white space unchanged. */
export function textOf(node: MarkupNode): string {
  return typeof node === "string" ? node : node.children.map(textOf).join("");
}
