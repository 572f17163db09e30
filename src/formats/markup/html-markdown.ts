import { toMarkdown } from "./markdown.ts";
import { readablePart } from "./readable-part.ts";
import { type MarkupElement, elementsBelow, firstBelow, parseMarkup, textOf } from "./tree.ts";
import { oneLine } from "../../lib/one-line.ts";

/** Title and text of a page. */
export interface HtmlReading {
  /** The page's title, else its first heading; one line. */
  readonly title?: string;
  /** Empty for a page without text, such as one that scripts render. */
  readonly markdown: string;
}

/** Options of the conversion. */
export interface HtmlOrigin {
  /** URL of the page, against which relative links are resolved. Default: links stay as they are. */
  readonly url?: string;
  /** Converts all of the text, as for an e-mail or a chapter. Default: the readable part, without menus and the like. */
  readonly whole?: boolean;
}

/**
 * Converts the readable part of an HTML page to Markdown. Takes time linear in the length, some 30 ms per megabyte. Throws
 * `MarkupTooDeep`. Deterministic; makes no requests.
 */
export function htmlToMarkdown(html: string, { url, whole = false }: HtmlOrigin = {}): HtmlReading {
  const document = parseMarkup(html, "html");
  const base = baseOf(document, url);
  const markdown = toMarkdown(whole ? document : readablePart(document), base);
  const title = titleOf(document);
  return { ...(title !== undefined && { title }), markdown };
}

/** Returns the base URL of links; a `base` element is itself relative to the page's URL. */
function baseOf(document: MarkupElement, url: string | undefined): string | undefined {
  const href = firstBelow(document, "base")?.attributes["href"];
  if (href === undefined) return url;
  return URL.parse(href, url)?.href ?? url;
}

function titleOf(document: MarkupElement): string | undefined {
  for (const name of ["title", "h1"]) {
    const element = firstBelow(document, name);
    const text = element === undefined ? "" : oneLine(textOf(element));
    if (text !== "") return text;
    if (name === "title") {
      const shared = sharedTitle(document);
      if (shared !== undefined) return shared;
    }
  }
  return undefined;
}

/** Returns the Open Graph title. */
function sharedTitle(document: MarkupElement): string | undefined {
  for (const { attributes } of elementsBelow(document, new Set(["meta"]))) {
    const text = oneLine(attributes["content"] ?? "");
    if (attributes["property"] === "og:title" && text !== "") return text;
  }
  return undefined;
}
