import { type MarkupElement, type MarkupNode, elementsBelow } from "./tree.ts";

/** Elements without readable text: scripts, controls, media. */
const UNREAD = new Set(
  "head script style template noscript svg canvas iframe object embed audio video map button select textarea input datalist".split(
    " ",
  ),
);
/** Elements around the main text. */
const AROUND = new Set(["nav", "aside", "footer", "dialog"]);
const AROUND_ROLES = new Set([
  "navigation",
  "banner",
  "contentinfo",
  "complementary",
  "search",
  "dialog",
  "alertdialog",
]);
/** Words of classes and ids that mark elements around the text. Whole words only: `article-menu-guide` is text. */
const AROUND_WORDS =
  /^(?:(?:site|page|main|global|top|left|right|bottom|primary|secondary|md|js)[-_]*)?(?:nav|navbar|navigation|navigator|menu|menubar|sidebar|side-bar|breadcrumbs?|footer|cookies?(?:[-_]?(?:banner|bar|consent|notice))?|consent|skip-?(?:link|nav|to-?content)|share|sharing|social(?:[-_]links)?|advert(?:isement)?s?|ads?|promo|popup|modal|headerlink|pagination)$/i;

/** Share of all text that a marked main part must hold to be used. */
const MAIN_SHARE = 0.3;
const ARTICLE_SHARE = 0.5;
/** A block with at least so many links that make up this share of its text is a menu, regardless of its name. */
const MENU_LINKS = 5;
const MENU_SHARE = 0.8;

/**
 * Returns the readable part of a page: its `main` or only `article`, else the body without navigation and the like. Errs
 * towards too much: returns the whole page rather than nothing.
 */
export function readablePart(document: MarkupElement): MarkupElement {
  const body = elementsBelow(document, new Set(["body"])).next().value ?? document;
  const visible = without(body, (element) => isUnread(element));
  const all = textLength(visible);
  const mains = [...elementsBelow(visible, new Set(["main"])), ...withRole(visible, "main")];
  const articles = [...elementsBelow(visible, new Set(["article"]))];

  const candidates: readonly (readonly [readonly MarkupElement[], number])[] = [
    [mains, MAIN_SHARE],
    [articles, ARTICLE_SHARE],
  ];
  for (const [found, share] of candidates) {
    const [only] = found;
    if (only === undefined || found.length !== 1) continue;
    const cleaned = without(only, isAround);
    if (textLength(cleaned) >= all * share) return cleaned;
  }
  const cleaned = without(
    visible,
    (element) => isAround(element) || isPageHeader(element) || isMenu(element),
  );
  return textLength(cleaned) > 0 ? cleaned : visible;
}

function isUnread({ name, attributes }: MarkupElement): boolean {
  if (UNREAD.has(name) || "hidden" in attributes || attributes["aria-hidden"] === "true") return true;
  const style = attributes["style"];
  return style !== undefined && /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style);
}

function isAround({ name, attributes }: MarkupElement): boolean {
  if (AROUND.has(name) || AROUND_ROLES.has(attributes["role"] ?? "")) return true;
  if (name === "body" || name === "main" || name === "article" || /^h[1-6]$/.test(name)) return false;
  const words = `${attributes["class"] ?? ""} ${attributes["id"] ?? ""}`;
  return words.length > 1 && words.split(/\s+/).some((word) => AROUND_WORDS.test(word));
}

/** Whether a header holds no heading, and so only the page's logo and menu. */
function isPageHeader(element: MarkupElement): boolean {
  return element.name === "header" && elementsBelow(element, HEADINGS).next().done === true;
}
const HEADINGS = new Set(["h1", "h2", "h3", "h4", "h5", "h6"]);

function isMenu(element: MarkupElement): boolean {
  if (element.name !== "ul" && element.name !== "ol" && element.name !== "div") return false;
  const links = [...elementsBelow(element, new Set(["a"]))];
  if (links.length < MENU_LINKS) return false;
  const linked = links.reduce((sum, link) => sum + textLength(link), 0);
  const whole = textLength(element);
  // Longer link texts are titles: the content of an index page.
  return linked >= whole * MENU_SHARE && linked / links.length < 24;
}

function* withRole({ children }: MarkupElement, role: string): Generator<MarkupElement> {
  for (const child of children) {
    if (typeof child === "string") continue;
    if (child.attributes["role"] === role && child.name !== "main") yield child;
    yield* withRole(child, role);
  }
}

/** Copies an element without the descendants for which `test` holds. */
function without(element: MarkupElement, test: (element: MarkupElement) => boolean): MarkupElement {
  const children: MarkupNode[] = [];
  for (const child of element.children) {
    if (typeof child === "string") children.push(child);
    else if (!test(child)) children.push(without(child, test));
  }
  return { ...element, children };
}

/** Counts the characters of an element, without white space and punctuation. */
function textLength(node: MarkupNode): number {
  if (typeof node !== "string") return node.children.reduce((sum, child) => sum + textLength(child), 0);
  return node.replaceAll(/[\s\p{P}]+/gu, "").length;
}
