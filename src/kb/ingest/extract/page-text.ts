/** A piece of text on a page as PDF.js gives it: in reading order, in points, the origin at the bottom left. */
export interface TextItem {
  readonly str: string;
  /** The item is the last one of its line. */
  readonly hasEOL: boolean;
  readonly height: number;
  /** Text matrix; the last two numbers are x and y of the beginning. */
  readonly transform: readonly number[];
}

interface Line {
  readonly text: string;
  readonly y: number;
  readonly height: number;
}

/** A gap this much wider than the page's median starts a paragraph: between single (1) and double (2) spacing. */
const PARAGRAPH_GAP = 1.35;
/** Distance of double-spaced lines, in multiples of the type height. */
const DOUBLE_SPACING = 2.4;

/** Control characters other than tab and line feed: no text, and some stores refuse them. */
// oxlint-disable-next-line no-control-regex -- the pattern matches control characters
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/**
 * Returns the text of a page, line by line, with a blank line between paragraphs, which it recognises by the gap between lines.
 * Collapses white space within a line. Keeps words hyphenated at a line's end as printed.
 */
export function pageText(items: readonly TextItem[]): string {
  const lines = toLines(items);
  const usualGap = medianGap(lines);
  let text = "";
  let above: Line | undefined;
  for (const line of lines) {
    if (above !== undefined) text += beginsParagraph(above, line, usualGap) ? "\n\n" : "\n";
    text += line.text;
    above = line;
  }
  return text.toWellFormed();
}

/** Returns the non-empty lines in reading order. */
function toLines(items: readonly TextItem[]): readonly Line[] {
  const lines: Line[] = [];
  let text = "";
  let y: number | undefined;
  let height = 0;
  const endLine = (): void => {
    const clean = text.replace(CONTROLS, "").replace(/\s+/g, " ").trim();
    if (clean !== "") lines.push({ text: clean, y: y ?? 0, height });
    text = "";
    y = undefined;
    height = 0;
  };
  for (const item of items) {
    text += item.str;
    if (item.str.trim() !== "") {
      y ??= item.transform[5];
      height = Math.max(height, item.height);
    }
    if (item.hasEOL) endLine();
  }
  endLine();
  return lines;
}

function beginsParagraph(above: Line, line: Line, usualGap: number): boolean {
  const height = Math.max(above.height, line.height);
  // Caps the median gap at double spacing: a page of a few distant lines has no usual gap.
  const spacing = Math.max(height, Math.min(usualGap, height * DOUBLE_SPACING));
  // A new column starts higher than the last line (a negative gap): the sentence usually continues there.
  return above.y - line.y > spacing * PARAGRAPH_GAP;
}

/** Returns the median distance between consecutive lines, the lower one of two; 0 if there are none. */
function medianGap(lines: readonly Line[]): number {
  const gaps: number[] = [];
  for (const [i, line] of lines.entries()) {
    const above = lines[i - 1];
    if (above !== undefined && above.y > line.y) gaps.push(above.y - line.y);
  }
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor((gaps.length - 1) / 2)] ?? 0;
}
