/** A rectangle in pixels of the upright picture that was read, with the origin at the top left. */
export interface OcrBox {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A word with its position; confidence from 0 to 1. */
export interface OcrWord {
  readonly text: string;
  readonly confidence: number;
  readonly box: OcrBox;
}

/** A line of words, in reading order. */
export interface OcrLine extends OcrWord {
  readonly words: readonly OcrWord[];
  /** Whether it is the first line of a paragraph. */
  readonly startsParagraph: boolean;
}

/** The recognised text of one picture: an image, or a page of a document. */
export interface OcrPage {
  /** Number of the page, from 1. */
  readonly page: number;
  /** In reading order; empty if there is no text. */
  readonly lines: readonly OcrLine[];
}

interface FoundBox {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}
interface Found {
  readonly text: string;
  readonly confidence: number;
  readonly bbox: FoundBox;
}
/** The used part of the recogniser's result. */
export interface FoundBlock {
  readonly paragraphs: readonly {
    readonly lines: readonly (Found & { readonly words: readonly Found[] })[];
  }[];
}

/** Words with a lower confidence are guesses at specks and drawings; true words on bad scans are well above. */
const WORD_CONFIDENCE_MIN = 0.2;

/** A gap between two lines that exceeds this many line heights starts a paragraph. */
const PARAGRAPH_GAP = 0.9;

/** Returns the recognised lines and words, without guesses. */
export function linesOf(blocks: readonly FoundBlock[]): OcrLine[] {
  const lines: OcrLine[] = [];
  for (const { paragraphs } of blocks) {
    for (const paragraph of paragraphs) {
      let isFirst = true;
      for (const line of paragraph.lines) {
        const words = line.words.map(wordOf).filter(isWord);
        if (words.length === 0) continue;
        const text = words.map((word) => word.text).join(" ");
        const box = boxOf(line.bbox);
        const startsParagraph = isFirst || isApart(lines.at(-1)?.box ?? box, box);
        lines.push({ text, confidence: meanConfidence(words), box, words, startsParagraph });
        isFirst = false;
      }
    }
  }
  return lines;
}

function isApart(above: OcrBox, box: OcrBox): boolean {
  const height = Math.min(above.bottom - above.top, box.bottom - box.top);
  return box.top - above.bottom > height * PARAGRAPH_GAP;
}

function wordOf({ text, confidence, bbox }: Found): OcrWord {
  return { text: text.trim().toWellFormed(), confidence: confidence / 100, box: boxOf(bbox) };
}

function isWord({ text, confidence }: OcrWord): boolean {
  return text !== "" && confidence >= WORD_CONFIDENCE_MIN;
}

function boxOf({ x0, y0, x1, y1 }: FoundBox): OcrBox {
  return { left: x0, top: y0, right: x1, bottom: y1 };
}

function meanConfidence(words: readonly OcrWord[]): number {
  const chars = words.reduce((sum, { text }) => sum + text.length, 0);
  return words.reduce((sum, { text, confidence }) => sum + confidence * text.length, 0) / Math.max(chars, 1);
}

/** Returns how much was read with confidence. Distinguishes an upright picture from a sideways one. */
export function readingScore(lines: readonly OcrLine[]): number {
  let score = 0;
  for (const { words } of lines) {
    for (const { text, confidence } of words) {
      const letters = text.replaceAll(/[^\p{L}\p{N}]+/gu, "").length;
      // Sideways text is read as short scraps of characters, with a low confidence.
      if (letters >= 2 && confidence >= 0.6) score += letters * confidence;
    }
  }
  return score;
}

/** Returns the share of letters that were read with confidence; 0 without letters. */
export function readingQuality(lines: readonly OcrLine[]): number {
  const letters = letterCount(lines);
  return letters === 0 ? 0 : readingScore(lines) / letters;
}

function letterCount(lines: readonly OcrLine[]): number {
  return lines.reduce((sum, { text }) => sum + text.replaceAll(/[^\p{L}\p{N}]+/gu, "").length, 0);
}

/**
 * Measured: 23 pictures with text in the recogniser's languages (scans, screens, a street with signs) have at least 0.66; 18
 * drawings, charts and texts in other scripts have at most 0.31.
 */
const TEXT_QUALITY_MIN = 0.5;
/** Fewer letters are specks on an empty page, and not reported. */
const SCRAP_LETTERS_MIN = 5;

/** Reports whether the result is text, not scraps of a drawing or of an unknown script. */
export function holdsText(lines: readonly OcrLine[]): boolean {
  return readingScore(lines) >= 2 && readingQuality(lines) >= TEXT_QUALITY_MIN;
}

/** Reports whether the result is only such scraps. */
export function holdsScraps(lines: readonly OcrLine[]): boolean {
  return !holdsText(lines) && letterCount(lines) >= SCRAP_LETTERS_MIN;
}

/** Returns the text of a picture, line by line, with a blank line between paragraphs. */
export function ocrText({ lines }: Pick<OcrPage, "lines">): string {
  let text = "";
  for (const line of lines) {
    if (text !== "") text += line.startsParagraph ? "\n\n" : "\n";
    text += line.text;
  }
  return text;
}
