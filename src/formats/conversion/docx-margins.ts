import type { MarkupElement } from "../markup/tree.ts";
import type { Archive } from "./archive.ts";
import { oneLine } from "../../lib/one-line.ts";
import { parsePart, relationsOf } from "./office-package.ts";

/** A section has up to six headers and footers; most sections share theirs. */
const PARTS_MAX = 200;
const LINES_MAX = 100;
const LINE_CHARS_MAX = 1000;
/** A line with a page number is useful only with this many other letters: "Page 1 of 9" has fewer. */
const PAGED_LETTERS_MIN = 12;

/** Fields whose result differs from page to page. */
const PAGE_FIELD = /^\s*(?:PAGE|NUMPAGES|SECTIONPAGES|SECTION)\b/i;

/**
 * Returns the headers and footers of a Word document as a Markdown list, each line once even if several sections repeat it;
 * empty if there are none. Omits page numbers.
 */
export async function readMargins(archive: Archive): Promise<string> {
  const main = (await relationsOf(archive, "")).byType.get("officeDocument");
  const { all } = await relationsOf(archive, main ?? "word/document.xml");
  const lines = new Set<string>();
  for (const { name } of all
    .filter(({ type }) => type === "header" || type === "footer")
    .slice(0, PARTS_MAX)) {
    const part = await parsePart(archive, name);
    for (const line of part === undefined ? [] : linesOf(part)) {
      if (lines.size < LINES_MAX) lines.add(line);
    }
  }
  if (lines.size === 0) return "";
  return ["Headers and footers of the pages:", "", ...[...lines].map((line) => `- ${line}`)].join("\n");
}

function linesOf(part: MarkupElement): string[] {
  const paragraphs: Paragraph[] = [];
  collect(part, undefined, paragraphs);
  return paragraphs
    .map(({ text, isPaged }) => ({ text: oneLine(text).slice(0, LINE_CHARS_MAX).toWellFormed(), isPaged }))
    .filter(({ text, isPaged }) => letters(text) >= (isPaged ? PAGED_LETTERS_MIN : 1))
    .map(({ text }) => text);
}

interface Paragraph {
  text: string;
  isPaged: boolean;
  /** Instructions of the fields that are open, the innermost last. */
  readonly fields: string[];
}

/** Adds the paragraphs in an element. Those of a text box follow the paragraph that contains it. */
function collect(element: MarkupElement, into: Paragraph | undefined, paragraphs: Paragraph[]): void {
  for (const child of element.children) {
    if (typeof child === "string") continue;
    switch (child.name) {
      case "w:p": {
        const paragraph: Paragraph = { text: "", isPaged: false, fields: [] };
        paragraphs.push(paragraph);
        collect(child, paragraph, paragraphs);
        break;
      }
      // The same text box again, for older programs.
      case "mc:Fallback":
        break;
      case "w:t":
        if (into !== undefined) appendText(child, into);
        break;
      case "w:tab":
      case "w:br":
        if (into !== undefined) into.text += " ";
        break;
      case "w:fldChar":
      case "w:instrText":
        if (into !== undefined) readField(child, into);
        break;
      case "w:fldSimple":
        if (into !== undefined && PAGE_FIELD.test(child.attributes["w:instr"] ?? "")) into.isPaged = true;
        else collect(child, into, paragraphs);
        break;
      default:
        collect(child, into, paragraphs);
    }
  }
}

function appendText(element: MarkupElement, into: Paragraph): void {
  if (into.fields.some((instruction) => PAGE_FIELD.test(instruction))) return;
  into.text += element.children.filter((node) => typeof node === "string").join("");
}

/** A field is `begin`, its instruction, `separate`, its last result, `end`. */
function readField(element: MarkupElement, into: Paragraph): void {
  const type = element.attributes["w:fldCharType"];
  if (type === "begin") into.fields.push("");
  if (type === "end") into.fields.pop();
  const last = into.fields.length - 1;
  if (element.name !== "w:instrText" || last < 0) return;
  into.fields[last] += element.children.filter((node) => typeof node === "string").join("");
  if (PAGE_FIELD.test(into.fields[last] ?? "")) into.isPaged = true;
}

function letters(text: string): number {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "").length;
}
