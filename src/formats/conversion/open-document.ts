import { joinLocated, joinRows, locatedAt, type LocatedText, locationName } from "../markup/located-text.ts";
import { toMarkdown } from "../markup/markdown.ts";
import { numberedLines, type TableRow } from "../markup/table.ts";
import { type MarkupElement, type MarkupNode, childrenNamed, firstBelow, textOf } from "../markup/tree.ts";
import type { Archive } from "./archive.ts";
import type { Reading } from "./conversion.ts";
import { oneLine } from "../../lib/one-line.ts";
import { parsePart, requirePart } from "./office-package.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Maximum repetition of a row or a cell. A sheet may end in a million empty ones. */
const REPEATS_MAX = 100;
/** Rows of one table. */
const ROWS_MAX = 100_000;

/** Reads an OpenDocument text, sheet or presentation: headings, lists, tables, notes, slides with their numbers. */
export async function readOpenDocument(archive: Archive): Promise<Reading> {
  const manifest = await archive.text("META-INF/manifest.xml");
  if (manifest?.includes("encryption-data") === true)
    throw new ConversionRefusal("it is protected by a password");
  const content = await requirePart(archive, "content.xml");
  const body = firstBelow(content, "office:body");
  if (body === undefined) throw new ConversionRefusal("it is damaged: it has no body");

  const meta = await parsePart(archive, "meta.xml");
  const named = meta === undefined ? undefined : firstBelow(meta, "dc:title");
  const heading = firstBelow(body, "text:h");
  const title = [named, heading]
    .map((found) => (found === undefined ? "" : oneLine(textOf(found))))
    .find((words) => words !== "");
  const progress = { slides: 0 };
  const parted = firstBelow(body, "office:presentation") ?? firstBelow(body, "office:spreadsheet");
  if (parted === undefined) return { title, text: markdownOf(convertAll(body, progress)) };
  return { title, ...joinLocated(parted.children.flatMap((child) => partsOf(child, progress))) };
}

function markdownOf(children: readonly MarkupNode[]): string {
  return toMarkdown({ name: "body", attributes: {}, children });
}

/** Converts a slide, a sheet or what stands beside them. */
function partsOf(node: MarkupNode, progress: Progress): LocatedText[] {
  if (typeof node !== "string" && node.name === "table:table") return sheetOf(node, progress);
  const text = markdownOf(convert(node, progress));
  const isSlide = typeof node !== "string" && node.name === "draw:page";
  return [isSlide ? locatedAt(text, { slide: progress.slides }) : { text }];
}

/** Converts a sheet to a table under its name. A repeated row counts as often as it is repeated. */
function sheetOf(sheet: MarkupElement, progress: Progress): LocatedText[] {
  const name = locationName(sheet.attributes["table:name"] ?? "");
  const location = name === "" ? {} : { sheet: name };
  const rows: TableRow[] = [];
  let row = 1;
  let isCut = false;
  for (const each of rowsOf(sheet)) {
    const count = repeatsOf(each.attributes["table:number-rows-repeated"]);
    const cells = cellsOf(each, progress).map(({ children }) => markdownOf(children));
    const isEmpty = cells.every((cell) => cell === "");
    const written = isEmpty ? 0 : Math.min(count, REPEATS_MAX);
    isCut = rows.length + written > ROWS_MAX;
    for (let at = 0; at < written && rows.length < ROWS_MAX; at++) rows.push({ row: row + at, cells });
    if (isCut) break;
    row += count;
  }
  if (rows.length === 0) return [];
  const head = name === "" ? [] : [locatedAt(`## ${name}`, location)];
  const rest = isCut ? [locatedAt(`(More rows of the sheet ${name} are left out.)`, location)] : [];
  return [...head, joinRows(numberedLines(rows), location), ...rest];
}

interface Progress {
  slides: number;
}

function convertAll({ children }: MarkupElement, progress: Progress): MarkupNode[] {
  return children.flatMap((child) => convert(child, progress));
}

/** The HTML element for an element. Others are transparent: their text counts. */
const AS_HTML: ReadonlyMap<string, string> = new Map([
  ["text:p", "p"],
  ["text:list", "ul"],
  ["text:list-item", "li"],
  ["text:list-header", "li"],
  ["text:section", "div"],
  ["table:table-row", "tr"],
  ["draw:text-box", "div"],
  ["draw:frame", "div"],
]);
/** Elements whose text is about the document and not part of it. */
const LEFT_OUT = new Set([
  "text:tracked-changes",
  "text:table-of-content",
  "text:alphabetical-index",
  "text:sequence-decls",
  "text:variable-decls",
  "office:forms",
  "office:annotation",
  "office:event-listeners",
  "presentation:date-time",
  "text:page-number",
  "svg:title",
  "table:calculation-settings",
]);

function convert(node: MarkupNode, progress: Progress): MarkupNode[] {
  if (typeof node === "string") return [node];
  const { name, attributes } = node;
  if (LEFT_OUT.has(name)) return [];
  switch (name) {
    case "text:s":
      return [" "];
    case "text:tab":
      return [" "];
    case "text:line-break":
      return [element("br", [])];
    case "text:h": {
      const level = Math.min(Math.max(Number(attributes["text:outline-level"]) || 1, 1), 6);
      return [element(`h${level}`, convertAll(node, progress))];
    }
    case "text:a":
      return [
        {
          name: "a",
          attributes: { href: attributes["xlink:href"] ?? "" },
          children: convertAll(node, progress),
        },
      ];
    case "text:note-citation":
      return [];
    case "text:note-body":
      return [" (", ...childrenInline(node, progress), ")"];
    case "presentation:notes":
      return withText("Notes:", convertAll(node, progress));
    case "draw:page":
      progress.slides += 1;
      return [element("h2", [`Slide ${progress.slides}`]), ...convertAll(node, progress)];
    case "table:table":
      return tableOf(node, progress);
    default: {
      const children = convertAll(node, progress);
      const html = AS_HTML.get(name);
      return html === undefined ? children : [element(html, children)];
    }
  }
}

/** Puts the text of a note where it is cited, on the same line. */
function childrenInline(node: MarkupElement, progress: Progress): MarkupNode[] {
  return node.children.flatMap((child) =>
    typeof child !== "string" && child.name === "text:p"
      ? convertAll(child, progress)
      : convert(child, progress),
  );
}

function withText(head: string, nodes: readonly MarkupNode[]): MarkupNode[] {
  return nodes.some((node) => textOf(node).trim() !== "") ? [element("p", [head]), ...nodes] : [];
}

/** Elements that group rows. */
const ROW_GROUPS = new Set(["table:table-rows", "table:table-header-rows", "table:table-row-group"]);

/** The rows of this table, without those of tables in its cells. */
function* rowsOf({ children }: MarkupElement): Generator<MarkupElement> {
  for (const child of children) {
    if (typeof child === "string") continue;
    if (child.name === "table:table-row") yield child;
    else if (ROW_GROUPS.has(child.name)) yield* rowsOf(child);
  }
}

function cellsOf(row: MarkupElement, progress: Progress): MarkupElement[] {
  return row.children.flatMap((cell) => {
    if (typeof cell === "string" || !/^table:(?:covered-)?table-cell$/.test(cell.name)) return [];
    const children = convertAll(cell, progress);
    return repeated(element("td", children), cell.attributes["table:number-columns-repeated"]);
  });
}

function tableOf(table: MarkupElement, progress: Progress): MarkupNode[] {
  const rows: MarkupNode[] = [];
  for (const row of rowsOf(table)) {
    const cells = cellsOf(row, progress);
    // The Markdown table omits empty rows too.
    const isEmpty = cells.every((cell) => textOf(cell).trim() === "");
    if (!isEmpty) rows.push(...repeated(element("tr", cells), row.attributes["table:number-rows-repeated"]));
    if (rows.length >= ROWS_MAX) {
      rows.splice(ROWS_MAX, Infinity, element("tr", [element("td", ["(More rows are left out.)"])]));
      break;
    }
  }
  const name = table.attributes["table:name"];
  const isSheet =
    childrenNamed(table, "office:forms").length > 0 || name === undefined || !/^Table\d+$/.test(name);
  if (rows.length === 0) return [];
  return [...(isSheet && name !== undefined ? [element("h2", [name])] : []), element("table", rows)];
}

function repeated(node: MarkupElement, times: string | undefined): MarkupElement[] {
  const count = Math.min(repeatsOf(times), REPEATS_MAX);
  return Array.from({ length: textOf(node).trim() === "" ? Math.min(count, 50) : count }, () => node);
}

function repeatsOf(times: string | undefined): number {
  return Math.max(Math.trunc(Number(times ?? 1)) || 1, 1);
}

function element(name: string, children: readonly MarkupNode[]): MarkupElement {
  return { name, attributes: {}, children };
}
