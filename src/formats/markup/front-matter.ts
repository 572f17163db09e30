/** Longer front matter is not hand-written. */
const FRONT_MATTER_CHARS_MAX = 64 * 1024;
const OPENING = /^---[ \t]*\r?\n(?![ \t]*\r?\n)/;
const CLOSING = /^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/m;
/** Splits into entries: each begins with a name at the start of a line. */
const ENTRY = /^(?=[^\s#-][^:\n]*:(?:\s|$))/m;
/** Entries that sort a document and change often. */
const LABELS: ReadonlySet<string> = new Set(["aliases", "categories", "category", "keywords", "tag", "tags"]);
/** A value that programs write: a date with or without a time, a number, true or false. */
const FACT = /^["']?(?:\d{4}-\d{2}-\d{2}\S*(?: \d{1,2}:\S+)?|[-+]?\d[\d.,]*|true|false)["']?$/i;

/** Returns the offset of the text after its front matter; 0 without any. Pure. */
export function frontMatterEnd(text: string): number {
  const opening = OPENING.exec(text)?.[0].length;
  if (opening === undefined) return 0;
  const closing = CLOSING.exec(text.slice(opening, opening + FRONT_MATTER_CHARS_MAX));
  return closing === null ? 0 : opening + closing.index + closing[0].length;
}

/**
 * Returns the text without the labels and facts in its front matter (the YAML between `---` lines at its start): tags, keywords,
 * dates, numbers. The rest of the front matter stays. Pure.
 */
export function withoutLabels(text: string): string {
  const opening = OPENING.exec(text)?.[0].length;
  if (opening === undefined) return text;
  const closing = CLOSING.exec(text.slice(opening, opening + FRONT_MATTER_CHARS_MAX))?.index;
  if (closing === undefined) return text;
  const entries = text.slice(opening, opening + closing).split(ENTRY);
  const rest = entries.filter((entry) => !isLabel(entry)).join("");
  return text.slice(0, opening) + rest + text.slice(opening + closing);
}

function isLabel(entry: string): boolean {
  const colon = entry.indexOf(":");
  return LABELS.has(entry.slice(0, colon).trim().toLowerCase()) || FACT.test(entry.slice(colon + 1).trim());
}
