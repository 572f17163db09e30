import { tableToMarkdown } from "./table.ts";
import { type MarkupElement, type MarkupNode, childrenNamed, elementsBelow, textOf } from "./tree.ts";
import { oneLine } from "../../lib/one-line.ts";

/** Inline elements. Every other element starts a block. */
const INLINE = new Set(
  "a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd label mark nobr output q rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split(
    " ",
  ),
);
/** Elements without readable text. */
const LEFT_OUT = new Set(
  "head script style template noscript svg canvas iframe object embed audio video button select textarea input datalist".split(
    " ",
  ),
);
const MARKS: ReadonlyMap<string, string> = new Map([
  ["b", "**"],
  ["strong", "**"],
  ["i", "*"],
  ["em", "*"],
  ["del", "~~"],
  ["s", "~~"],
  ["strike", "~~"],
]);

/**
 * Renders an HTML tree as Markdown: headings, paragraphs, lists, tables, quotes, code, links, emphasis. The text is for
 * reading and searching, so it escapes only what would change the kind of a line (`a_b` stays, not `a\_b`). `base` is the
 * base URL of links.
 */
export function toMarkdown(root: MarkupElement, base?: string): string {
  return blocksOf(root.children, { base, inTable: false, nesting: 0 }).join("\n\n");
}

/** Deepest nesting of quotes and lists that is indented: each level adds characters to every line below it. */
const NESTING_MAX = 12;

interface Context {
  readonly base: string | undefined;
  /** A table inside a table is layout. */
  readonly inTable: boolean;
  /** Depth of enclosing quotes and lists. */
  readonly nesting: number;
}

function blocksOf(nodes: readonly MarkupNode[], context: Context): string[] {
  const blocks: string[] = [];
  let line: MarkupNode[] = [];
  const endLine = (): void => {
    const text = line.length === 0 ? "" : paragraph(inline(line, context));
    if (text !== "") blocks.push(text);
    line = [];
  };
  for (const node of nodes) {
    if (typeof node === "string" || (INLINE.has(node.name) && !holdsBlock(node))) {
      line.push(node);
      continue;
    }
    if (LEFT_OUT.has(node.name)) continue;
    endLine();
    for (const block of blocksOfElement(node, context)) if (block !== "") blocks.push(block);
  }
  endLine();
  return blocks;
}

/** Whether an inline element, such as a link, encloses blocks; its parts then become blocks. */
function holdsBlock({ children }: MarkupElement): boolean {
  return children.some(
    (child) =>
      typeof child !== "string" &&
      !LEFT_OUT.has(child.name) &&
      (!INLINE.has(child.name) || holdsBlock(child)),
  );
}

function blocksOfElement(element: MarkupElement, context: Context): string[] {
  const { name, children } = element;
  if (LEFT_OUT.has(name)) return [];
  switch (name) {
    case "h1":
    case "h2":
    case "h3":
    case "h4":
    case "h5":
    case "h6": {
      const heading = oneLine(inline(children, context));
      return heading === "" ? [] : [`${"#".repeat(Number(name[1]))} ${heading}`];
    }
    case "ul":
    case "ol":
      return context.nesting < NESTING_MAX ? listOf(element, deeper(context)) : blocksOf(children, context);
    case "pre":
      return [codeBlock(element)];
    case "blockquote": {
      const blocks = blocksOf(children, deeper(context));
      if (blocks.length === 0 || context.nesting >= NESTING_MAX) return blocks;
      return [prefixed(blocks.join("\n\n"), "> ", "> ")];
    }
    case "table":
      return tableOf(element, context);
    case "hr":
      return ["---"];
    case "dt":
      return [wrap("**", inline(children, context).trim())];
    default:
      return blocksOf(children, context);
  }
}

function deeper(context: Context): Context {
  return { ...context, nesting: context.nesting + 1 };
}

function listOf(list: MarkupElement, context: Context): string[] {
  const items: string[] = [];
  let number = Number.parseInt(list.attributes["start"] ?? "1", 10) || 1;
  for (const child of list.children) {
    if (typeof child === "string") {
      if (child.trim() !== "") items.push(`- ${paragraph(child)}`);
      continue;
    }
    const blocks = child.name === "li" ? blocksOf(child.children, context) : blocksOfElement(child, context);
    if (blocks.length === 0) continue;
    // A list directly inside a list, as in old pages, belongs to the item before it.
    const marker = list.name === "ol" && child.name === "li" ? `${number}. ` : "- ";
    const isNested = child.name === "ul" || child.name === "ol";
    const indent = " ".repeat(marker.length);
    items.push(prefixed(joinItem(blocks), isNested ? indent : marker, indent));
    if (child.name === "li") number += 1;
  }
  return items.length === 0 ? [] : [items.join("\n")];
}

/** Joins the blocks of an item, without a blank line before a nested list. */
function joinItem(blocks: readonly string[]): string {
  return blocks.reduce((text, block) => `${text}${/^(?:- |\d+\. )/.test(block) ? "\n" : "\n\n"}${block}`);
}

function prefixed(text: string, first: string, others: string): string {
  return text
    .split("\n")
    .map((line, at) => (at === 0 ? first + line : line === "" ? others.trimEnd() : others + line))
    .join("\n");
}

function codeBlock(pre: MarkupElement): string {
  const code = textOf(pre).replace(/^\n/, "").trimEnd();
  if (code.trim() === "") return "";
  const classes = [pre, ...elementsBelow(pre, new Set(["code"]))].map(
    ({ attributes }) => attributes["class"] ?? "",
  );
  const language = /(?:^|\s)lang(?:uage)?-([\w+#.-]+)/.exec(classes.join(" "))?.[1] ?? "";
  const runs = code.match(/`+/g)?.map((run) => run.length) ?? [];
  const fence = "`".repeat(Math.max(3, ...runs.slice(0, 1000).map((run) => run + 1)));
  return `${fence}${language}\n${code}\n${fence}`;
}

function tableOf(table: MarkupElement, context: Context): string[] {
  const rows = rowsOf(table).map((row) =>
    [...childrenNamedAny(row, CELLS)].map((cell) => ({
      blocks: blocksOf(cell.children, { ...context, inTable: true }),
      span: Number.parseInt(cell.attributes["colspan"] ?? "1", 10) || 1,
    })),
  );
  const captions = childrenNamed(table, "caption").flatMap(({ children }) => blocksOf(children, context));
  const isLayout =
    context.inTable ||
    elementsBelow(table, new Set(["table"])).next().done !== true ||
    rows.every((row) => row.length < 2);
  // A layout table reads cell by cell.
  if (isLayout) return [...captions, ...rows.flatMap((row) => row.flatMap(({ blocks }) => blocks))];
  const written = tableToMarkdown(
    rows.map((row) => row.flatMap(({ blocks, span }) => [blocks.join("\n"), ...spanned(span - 1)])),
  );
  return [...captions, written];
}

/** Empty cells for the columns that a wide cell covers, capped against absurd spans. */
function spanned(count: number): string[] {
  return Array.from({ length: Math.min(Math.max(count, 0), 50) }, () => "");
}

const CELLS = new Set(["td", "th"]);
const ROW_GROUPS = new Set(["thead", "tbody", "tfoot"]);

function rowsOf(table: MarkupElement): MarkupElement[] {
  return table.children.flatMap((child) => {
    if (typeof child === "string") return [];
    if (child.name === "tr") return [child];
    return ROW_GROUPS.has(child.name) ? childrenNamed(child, "tr") : [];
  });
}

function childrenNamedAny({ children }: MarkupElement, names: ReadonlySet<string>): MarkupElement[] {
  return children.filter(
    (child): child is MarkupElement => typeof child !== "string" && names.has(child.name),
  );
}

function inline(nodes: readonly MarkupNode[], context: Context): string {
  return nodes.map((node) => inlineNode(node, context)).join("");
}

function inlineNode(node: MarkupNode, context: Context): string {
  if (typeof node === "string") return node.replaceAll(/[\s\u00a0]+/g, " ");
  const { name, attributes, children } = node;
  if (LEFT_OUT.has(name)) return "";
  switch (name) {
    case "br":
      return "\n";
    case "wbr":
      return "";
    case "img":
      return image(attributes, context);
    case "code":
    case "kbd":
    case "samp":
    case "tt":
      return inlineCode(textOf(node));
    case "a":
      return link(inline(children, context), attributes["href"], context);
    default: {
      const text = inline(children, context);
      const mark = MARKS.get(name);
      return mark === undefined ? text : wrap(mark, text);
    }
  }
}

/** Wraps a text in marks and leaves white space outside: `** a**` is not emphasis. */
function wrap(mark: string, text: string): string {
  const words = text.trim();
  if (words === "" || words.includes(mark)) return text;
  const start = text.indexOf(words);
  return `${text.slice(0, start)}${mark}${words}${mark}${text.slice(start + words.length)}`;
}

function inlineCode(text: string): string {
  const words = oneLine(text);
  if (words === "") return text === "" ? "" : " ";
  return words.includes("`") ? `\`\` ${words} \`\`` : `\`${words}\``;
}

/** Text of a heading's link to itself. */
const ANCHOR_SIGNS = /^[#¶§🔗]?$/u;
/** Longer addresses are dropped: they mean nothing to a reader and fill a chunk. */
const ADDRESS_CHARS_MAX = 500;

function link(text: string, href: string | undefined, context: Context): string {
  const words = text.trim();
  if (href?.startsWith("#") === true && ANCHOR_SIGNS.test(words)) return "";
  const address = addressOf(href, context);
  if (words === "" || address === undefined || words.includes("\n")) return text;
  return text.replace(words, () => `[${words.replaceAll(/[[\]]/g, "\\$&")}](${address})`);
}

function image({ src, alt }: MarkupElement["attributes"], context: Context): string {
  const words = oneLine(alt ?? "");
  if (words === "") return "";
  const address = addressOf(src, context);
  return address === undefined ? words : `![${words.replaceAll(/[[\]]/g, "\\$&")}](${address})`;
}

/** Resolves the target of a link. Undefined for an anchor on the same page, a script or embedded data. */
function addressOf(href: string | undefined, { base }: Context): string | undefined {
  const given = href?.trim() ?? "";
  if (given === "" || given.startsWith("#") || given.length > ADDRESS_CHARS_MAX) return undefined;
  const absolute = URL.parse(given, base);
  if (absolute === null)
    return /^[a-z][a-z0-9+.-]*:/i.test(given) ? undefined : given.replaceAll(/[\s()]/g, encodeSign);
  if (!["http:", "https:", "mailto:", "ftp:"].includes(absolute.protocol)) return undefined;
  return absolute.href.replaceAll(/[()]/g, encodeSign);
}

function encodeSign(sign: string): string {
  return `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Normalises a paragraph and escapes lines that would read as a heading, list, quote or fence. */
function paragraph(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replaceAll(/ {2,}/g, " ").trim())
    .join("\n")
    .replaceAll(/\n{2,}/g, "\n")
    .trim()
    .replaceAll(/^(#{1,6} |>|[-+] |(?:```|~~~))/gm, "\\$1")
    .replaceAll(/^(\d{1,9})([.)] )/gm, "$1\\$2");
}
