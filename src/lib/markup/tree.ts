import { lazyModule } from "../lazy-module.ts";

const htmlparser = lazyModule((load) => load("htmlparser2") as typeof import("htmlparser2"));

/** A piece of a document in HTML or XML: text, or an element. References (`&amp;`) are resolved. */
export type MarkupNode = string | MarkupElement;

/** An element; names of HTML are lower-case, names of XML as they are written, with their prefix. */
export interface MarkupElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly MarkupNode[];
}

/** A document that no reader would have written: it is given up before it costs more. */
export class MarkupTooDeep extends Error {
  override readonly name = "MarkupTooDeep";
}

/** Deeper elements join their ancestor at this depth: whoever walks the tree may then do so by calling itself. */
const DEPTH_MAX = 200;
/**
 * Elements open at once. Thousands occur (`<font>` that nothing closes); the parser looks through all of them at each
 * tag, so 200,000 of them took it half a minute.
 */
const OPEN_MAX = 10_000;

interface Growing {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: MarkupNode[];
}

/**
 * Parses HTML as browsers forgive it, or XML without DTDs: an entity that a document declares stays as it is written.
 * The result is a root without a name. Throws `MarkupTooDeep`.
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
        // Below the limit an element stands beside its parent, so its text must stay in it.
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

/** All elements of one of these names below an element, in the order of the document. */
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

/** The first element of this name below an element. */
export function firstBelow(element: MarkupElement, name: string): MarkupElement | undefined {
  return elementsBelow(element, new Set([name])).next().value ?? undefined;
}

/** The elements of this name directly in an element. */
export function childrenNamed({ children }: MarkupElement, name: string): MarkupElement[] {
  return children.filter((child): child is MarkupElement => typeof child !== "string" && child.name === name);
}

/** The text of an element with all below it, white space as it stands. */
export function textOf(node: MarkupNode): string {
  return typeof node === "string" ? node : node.children.map(textOf).join("");
}
