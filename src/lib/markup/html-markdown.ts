import { toMarkdown } from "./markdown.ts";
import { readablePart } from "./readable-part.ts";
import { type MarkupElement, elementsBelow, firstBelow, parseMarkup, textOf } from "./tree.ts";
import { oneLine } from "../one-line.ts";

/** What a page says. */
export interface HtmlReading {
  /** The page's title, else its first heading; one line. */
  readonly title?: string;
  /** Empty where the page holds no text, as where scripts make it. */
  readonly markdown: string;
}

/** Where a page comes from. */
export interface HtmlOrigin {
  /** The page's own address: relative links become whole ones. Default: they stay as they are. */
  readonly url?: string;
  /** Take all of the text, as of an e-mail or a chapter. Default: the readable part, without menus and the like. */
  readonly whole?: boolean;
}

/**
 * Turns a page of HTML into the Markdown of its readable part. The work grows with the length of the text, some
 * 30 ms a megabyte; a page that is nested beyond sense throws `MarkupTooDeep`. Deterministic, loads no address.
 */
export function htmlToMarkdown(html: string, { url, whole = false }: HtmlOrigin = {}): HtmlReading {
  const document = parseMarkup(html, "html");
  const base = baseOf(document, url);
  const markdown = toMarkdown(whole ? document : readablePart(document), base);
  const title = titleOf(document);
  return { ...(title !== undefined && { title }), markdown };
}

/** The address that links are relative to: a `base` element counts from the page's own. */
function baseOf(document: MarkupElement, url: string | undefined): string | undefined {
  const href = firstBelow(document, "base")?.attributes["href"];
  if (href === undefined) return url;
  return URL.parse(href, url)?.href ?? url;
}

function titleOf(document: MarkupElement): string | undefined {
  for (const name of ["title", "h1"]) {
    const element = firstBelow(document, name);
    const words = element === undefined ? "" : oneLine(textOf(element));
    if (words !== "") return words;
    if (name === "title") {
      const shared = sharedTitle(document);
      if (shared !== undefined) return shared;
    }
  }
  return undefined;
}

/** The title that a page gives to those who link to it (Open Graph). */
function sharedTitle(document: MarkupElement): string | undefined {
  for (const { attributes } of elementsBelow(document, new Set(["meta"]))) {
    const words = oneLine(attributes["content"] ?? "");
    if (attributes["property"] === "og:title" && words !== "") return words;
  }
  return undefined;
}
