import { type MarkupElement, type MarkupNode, elementsBelow } from "./tree.ts";

/** Elements whose text nobody reads: programs, controls, media. */
const UNREAD = new Set(
  "head script style template noscript svg canvas iframe object embed audio video map button select textarea input datalist".split(
    " ",
  ),
);
/** Elements around the text proper. */
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
/** Words that stand in a class or id of what is around the text; whole words only, for `article-menu-guide` is text. */
const AROUND_WORDS =
  /^(?:(?:site|page|main|global|top|left|right|bottom|primary|secondary|md|js)[-_]*)?(?:nav|navbar|navigation|navigator|menu|menubar|sidebar|side-bar|breadcrumbs?|footer|cookies?(?:[-_]?(?:banner|bar|consent|notice))?|consent|skip-?(?:link|nav|to-?content)|share|sharing|social(?:[-_]links)?|advert(?:isement)?s?|ads?|promo|popup|modal|headerlink|pagination)$/i;

/** A part that says where the text is must hold this share of all text to be believed. */
const MAIN_SHARE = 0.3;
const ARTICLE_SHARE = 0.5;
/** A block of so many links that are nearly all of its text is a menu, whatever it is called. */
const MENU_LINKS = 5;
const MENU_SHARE = 0.8;

/**
 * The part of a page that people came to read: its `main` or only `article` where it has one, else the body without
 * what is around the text. Rather too much than too little: a page of which nothing would be left is given whole.
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

/** A header is the page's where it holds no heading: logo and menu. */
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
  // Links that are sentences are a list of titles, which is what an index page is made of.
  return linked >= whole * MENU_SHARE && linked / links.length < 24;
}

function* withRole({ children }: MarkupElement, role: string): Generator<MarkupElement> {
  for (const child of children) {
    if (typeof child === "string") continue;
    if (child.attributes["role"] === role && child.name !== "main") yield child;
    yield* withRole(child, role);
  }
}

/** A copy of an element that lacks all below it for which `test` holds. */
function without(element: MarkupElement, test: (element: MarkupElement) => boolean): MarkupElement {
  const children: MarkupNode[] = [];
  for (const child of element.children) {
    if (typeof child === "string") children.push(child);
    else if (!test(child)) children.push(without(child, test));
  }
  return { ...element, children };
}

/** Letters and digits of an element; white space and signs are no text. */
function textLength(node: MarkupNode): number {
  if (typeof node !== "string") return node.children.reduce((sum, child) => sum + textLength(child), 0);
  return node.replaceAll(/[\s\p{P}]+/gu, "").length;
}
