import { posix } from "node:path";
import { htmlToMarkdown } from "../markup/html-markdown.ts";
import { type MarkupElement, childrenNamed, elementsBelow, firstBelow, textOf } from "../markup/tree.ts";
import type { Archive } from "./archive.ts";
import type { Reading } from "./conversion.ts";
import { oneLine } from "../../lib/one-line.ts";
import { parsePart, requirePart } from "./office-package.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Chapters of one book; the longest ones have some thousand files. */
const CHAPTERS_MAX = 10_000;

/** Reads a book: its chapters in reading order, under their own headings. */
export async function readEpub(archive: Archive): Promise<Reading> {
  const container = await requirePart(archive, "META-INF/container.xml");
  const root = firstBelow(container, "rootfile")?.attributes["full-path"];
  if (root === undefined)
    throw new ConversionRefusal("it is damaged: it does not say where its contents are");
  const book = await requirePart(archive, root);
  const encrypted = await encryptedParts(archive);
  const chapters: string[] = [];
  for (const name of readingOrder(book, posix.dirname(root)).slice(0, CHAPTERS_MAX)) {
    if (encrypted.has(name)) throw new ConversionRefusal("it is encrypted (copy protection)");
    const text = await archive.text(name);
    if (text === undefined) continue;
    const { title, markdown } = htmlToMarkdown(text, { whole: true });
    // The title separates a chapter without a heading of its own from the previous one.
    const isHeaded = /^#{1,6} /m.test(markdown.slice(0, 500));
    if (markdown !== "")
      chapters.push(isHeaded || title === undefined ? markdown : `## ${title}\n\n${markdown}`);
  }
  const title = firstBelow(book, "dc:title");
  return {
    title: title === undefined ? undefined : oneLine(textOf(title)) || undefined,
    text: chapters.join("\n\n"),
  };
}

/** Names of the parts in reading order (EPUB 3.3, spine), each once. */
function readingOrder(book: MarkupElement, folder: string): string[] {
  const paths = new Map<string, string>();
  for (const { attributes } of elementsBelow(book, new Set(["item", "opf:item"]))) {
    const { id, href, "media-type": type = "" } = attributes;
    if (id !== undefined && href !== undefined && /html/.test(type)) {
      paths.set(id, posix.join(folder, decodePath(href)));
    }
  }
  const spine = firstBelow(book, "spine") ?? firstBelow(book, "opf:spine");
  if (spine === undefined) return [...paths.values()];
  const order = [...childrenNamed(spine, "itemref"), ...childrenNamed(spine, "opf:itemref")];
  return [...new Set(order.flatMap(({ attributes }) => paths.get(attributes["idref"] ?? "") ?? []))];
}

/** Names of the encrypted parts. Any book may have scrambled fonts; only chapters matter. */
async function encryptedParts(archive: Archive): Promise<ReadonlySet<string>> {
  const list = await parsePart(archive, "META-INF/encryption.xml");
  const names = new Set<string>();
  for (const name of ["enc:CipherReference", "CipherReference"]) {
    for (const { attributes } of list === undefined ? [] : elementsBelow(list, new Set([name]))) {
      if (attributes["URI"] !== undefined) names.add(decodePath(attributes["URI"]));
    }
  }
  return names;
}

function decodePath(href: string): string {
  const [path = ""] = href.split("#");
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a stray percent sign
  }
}
