import { joinLocated, locatedAt, type LocatedText } from "../markup/located-text.ts";
import { toMarkdown } from "../markup/markdown.ts";
import {
  type MarkupElement,
  type MarkupNode,
  childrenNamed,
  elementsBelow,
  firstBelow,
  textOf,
} from "../markup/tree.ts";
import type { Archive } from "./archive.ts";
import type { Reading } from "./conversion.ts";
import { oneLine } from "../../lib/one-line.ts";
import { packageTitle, parsePart, relationsOf, requirePart } from "./office-package.ts";

/** A full-day talk has some hundred slides. */
const SLIDES_MAX = 2000;
const PRESENTATION = "ppt/presentation.xml";

/** Reads a PowerPoint file: each slide with its number and title, its texts and tables, and the speaker's notes. */
export async function readPptx(archive: Archive): Promise<Reading> {
  const presentation = await requirePart(archive, PRESENTATION);
  const { byId } = await relationsOf(archive, PRESENTATION);
  const slides: LocatedText[] = [];
  let firstTitle: string | undefined;
  for (const { attributes } of elementsBelow(presentation, new Set(["p:sldId"]))) {
    if (slides.length >= SLIDES_MAX) {
      slides.push({ text: `(The slides after number ${SLIDES_MAX} are left out.)` });
      break;
    }
    const part = byId.get(attributes["r:id"] ?? "");
    const slide = part === undefined ? undefined : await parsePart(archive, part);
    if (part === undefined || slide === undefined) continue;
    const { title, body } = readSlide(slide);
    const notes = await readNotes(archive, part);
    firstTitle ??= title;
    const number = slides.length + 1;
    const head = element("h2", title === undefined ? `Slide ${number}` : `Slide ${number}: ${title}`);
    slides.push(locatedAt(toMarkdown(element("div", head, ...body, ...notes)), { slide: number }));
  }
  const hasText = slides.some(({ text }) => text.includes("\n") || text.includes(": "));
  return { title: (await packageTitle(archive)) ?? firstTitle, ...joinLocated(hasText ? slides : []) };
}

/** Kinds of placeholders. The title becomes the heading; content that repeats on each slide is omitted. */
const TITLES = new Set(["title", "ctrTitle"]);
const REPEATED = new Set(["sldNum", "dt", "ftr", "hdr", "sldImg"]);

function readSlide(slide: MarkupElement): { title: string | undefined; body: MarkupNode[] } {
  let title: string | undefined;
  const body: MarkupNode[] = [];
  const walk = (parent: MarkupElement): void => {
    for (const child of parent.children) {
      if (typeof child === "string") continue;
      switch (child.name) {
        case "p:sp": {
          const placeholder = firstBelow(child, "p:ph")?.attributes["type"] ?? "";
          if (REPEATED.has(placeholder)) break;
          const text = firstBelow(child, "p:txBody");
          const words = text === undefined ? "" : oneLine(paragraphTexts(text).join(" "));
          if (TITLES.has(placeholder) && title === undefined && words !== "") title = words;
          else if (text !== undefined) body.push(...paragraphs(text));
          break;
        }
        case "p:graphicFrame": {
          const table = firstBelow(child, "a:tbl");
          if (table !== undefined) body.push(tableOf(table));
          break;
        }
        case "p:pic": {
          const about = firstBelow(child, "p:cNvPr")?.attributes["descr"] ?? "";
          if (about.trim() !== "") body.push(element("p", about));
          break;
        }
        default:
          walk(child);
      }
    }
  };
  walk(slide);
  return { title, body };
}

/** Converts paragraphs to nodes. Consecutive list items become one list. */
function paragraphs(text: MarkupElement): MarkupNode[] {
  const nodes: MarkupNode[] = [];
  let items: MarkupNode[] = [];
  const endList = (): void => {
    if (items.length > 0) nodes.push(element("ul", ...items));
    items = [];
  };
  for (const paragraph of childrenNamed(text, "a:p")) {
    const words = runsOf(paragraph);
    if (words.every((word) => typeof word === "string" && word.trim() === "")) continue;
    const [properties] = childrenNamed(paragraph, "a:pPr");
    const isBullet =
      properties !== undefined &&
      (properties.attributes["lvl"] !== undefined ||
        ["a:buChar", "a:buAutoNum"].some((name) => childrenNamed(properties, name).length > 0));
    if (isBullet) items.push(element("li", ...words));
    else {
      endList();
      nodes.push(element("p", ...words));
    }
  }
  endList();
  return nodes;
}

function paragraphTexts(text: MarkupElement): string[] {
  return childrenNamed(text, "a:p").map((paragraph) => runsOf(paragraph).map(textOf).join(""));
}

function runsOf(paragraph: MarkupElement): MarkupNode[] {
  return paragraph.children.flatMap((child): readonly MarkupNode[] => {
    if (typeof child === "string") return [];
    if (child.name === "a:br") return [element("br")];
    if (child.name !== "a:r" && child.name !== "a:fld") return [];
    return childrenNamed(child, "a:t").map(textOf);
  });
}

function tableOf(table: MarkupElement): MarkupElement {
  const rows = childrenNamed(table, "a:tr").map((row) =>
    element("tr", ...childrenNamed(row, "a:tc").map((cell) => element("td", ...cellOf(cell)))),
  );
  return element("table", ...rows);
}

function cellOf(cell: MarkupElement): MarkupNode[] {
  const text = firstBelow(cell, "a:txBody");
  return text === undefined ? [] : paragraphs(text);
}

async function readNotes(archive: Archive, slide: string): Promise<MarkupNode[]> {
  const part = (await relationsOf(archive, slide)).byType.get("notesSlide");
  const notes = part === undefined ? undefined : await parsePart(archive, part);
  if (notes === undefined) return [];
  const { body } = readSlide(notes);
  return body.length === 0 ? [] : [element("p", "Notes:"), ...body];
}

function element(name: string, ...children: MarkupNode[]): MarkupElement {
  return { name, attributes: {}, children };
}
