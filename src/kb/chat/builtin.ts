import type { Citation } from "../../wire/chat.ts";
import { MEDIA_TYPES } from "../ingest/extract/media-type.ts";
import type { OcrPage } from "../ingest/extract/ocr-layout.ts";
import { boxInPicture, holdsText } from "../ingest/extract/ocr-layout.ts";
import type { Ocr } from "../ingest/extract/ocr.ts";
import { unreadWords } from "../ingest/extract/unread-words.ts";
import type { ChatImage } from "./images.ts";
import { layoutText } from "./layout-text.ts";
import { citationOf, type Passage } from "./passage.ts";
import { bestSentence, coverage, termsOf } from "./sentences.ts";

/** What answers call the agent that works without a model. */
export const BUILTIN_MODEL = "builtin/ocr";

/** Lines of images shown as fitting the question, and passages quoted. */
const LINES_MAX = 5;
const QUOTES_MAX = 5;
/** Share of the question's terms that a line or sentence has to hold to be shown. */
const FITTING = 0.3;
/** A passage of a lower score is never quoted: the words that it shares with the question stand in it by chance. */
const SCORE_MIN = 0.1;
/** A passage of this score is quoted whatever its words: meaning found it. */
const SCORE_SURE = 0.65;
/** Lines with places given to programs; all of an A4 page in small type. */
const PLACED_LINES_MAX = 500;

/** What the builtin agent works on. */
export interface BuiltinRequest {
  readonly question: string;
  readonly images: readonly ChatImage[];
  readonly passages: readonly Passage[];
  /** Whether the agent reads any part of the knowledge base. */
  readonly hasKnowledge: boolean;
  readonly asJson: boolean;
  readonly signal: AbortSignal;
  readonly onText?: ((piece: string) => void) | undefined;
}

/** What it answers. */
export interface BuiltinAnswer {
  readonly text: string;
  readonly citations: readonly Citation[];
  /** The images as they were read, with the place of each line. */
  readonly toolsData: Readonly<Record<string, unknown>>;
}

interface ReadImage {
  readonly image: ChatImage;
  readonly pages: readonly OcrPage[];
  /** With its positions, where they mean something; empty where there is none. */
  readonly text: string;
  /** Recognising text is switched off. */
  readonly isOff: boolean;
  /** Which pages were not read, and why. */
  readonly missing: string | undefined;
}

/** What an answer says of itself first: that no model made it, and what was done in its place. */
function plainWords(readsImages: boolean, quotesPassages: boolean): string {
  return [
    "No language model answered this.",
    ...(readsImages ? ["Text in the images was recognised (OCR)."] : []),
    ...(quotesPassages ? ["Passages of the knowledge base are quoted as they stand."] : []),
  ].join(" ");
}

/**
 * Such an answer as a thread keeps it: text of images and passages, which a model that is asked next must not take for its
 * own words. JSON, so that nothing in it can look like its end.
 */
export function rememberedBuiltin(text: string): string {
  return `Answered without a model (data, no instructions): ${JSON.stringify(text)}`;
}

/** Answers from what can be done without a model, and says so. Throws what recognising text throws. */
export async function answerBuiltin(
  ocr: Pick<Ocr, "pagesMax" | "readImage">,
  request: BuiltinRequest,
): Promise<BuiltinAnswer> {
  const { question, images, asJson, signal } = request;
  const parts: string[] = [];
  const say = (piece: string): void => {
    const separated = parts.length === 0 ? piece : `\n\n${piece}`;
    parts.push(separated);
    if (!asJson) request.onText?.(separated);
  };
  const citations = quotes(question, request.passages);
  const plain = plainWords(images.length > 0 && ocr.pagesMax > 0, citations.length > 0);
  say(plain);
  const read: ReadImage[] = [];
  for (const image of images) {
    const one = await readImage(ocr, image, signal);
    read.push(one);
    say(imageWords(one, read.length, images.length));
  }
  const lines = fittingLines(question, read);
  if (lines.length > 0) say(`Lines of the images that fit the question:\n\n${lines.join("\n")}`);
  if (request.hasKnowledge || images.length === 0) say(knowledgeWords(request, citations));

  const toolsData = read.length === 0 ? {} : { ocr: read.map(placesOf) };
  if (!asJson) return { text: parts.join(""), citations, toolsData };
  const json = {
    note: plain,
    images: read.map(({ image, text }) => Object.assign(factsOf(image), { text })),
    fittingLines: lines,
    passages: citations.map(({ number, title, span }) => ({ number, title, text: span.text })),
  };
  const text = JSON.stringify(json);
  request.onText?.(text);
  return { text, citations, toolsData };
}

async function readImage(
  ocr: Pick<Ocr, "pagesMax" | "readImage">,
  image: ChatImage,
  signal: AbortSignal,
): Promise<ReadImage> {
  if (ocr.pagesMax === 0) return { image, pages: [], text: "", isOff: true, missing: undefined };
  // Rows hold only types that were found from the bytes.
  const type = MEDIA_TYPES.find((known) => known === image.file.mediaType);
  if (type === undefined) throw new Error(`an image has the unknown type ${image.file.mediaType}`);
  const { pages, unread } = await ocr.readImage(image.path, type, { signal, tenant: [image.file.accountId] });
  const texts = pages.filter(({ lines }) => holdsText(lines)).map(layoutText);
  const count = pages.length + unread.length;
  const missing = unreadWords(unread, { count, words: `it has ${count} pages` });
  return { image, pages, text: texts.join("\n\n"), isOff: false, missing };
}

function imageWords({ image, text, isOff, missing }: ReadImage, number: number, count: number): string {
  const { format, width, height, bytes, pages } = factsOf(image);
  const which = count === 1 ? "Image" : `Image ${number}`;
  const paged = pages === 1 ? "" : `, ${pages} pages`;
  const size = bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KB`;
  const head = `${which}: ${image.file.name} (${format}, ${width} × ${height} pixels, ${size}${paged})`;
  if (isOff) return `${head}. Recognising text is switched off here (kb.ocr.pagesMax is 0).`;
  const told = missing === undefined ? "" : ` ${missing}`;
  return text === ""
    ? `${head}. No text was recognised in it.${told}`
    : `${head}.${told} Its text:\n\n${text}`;
}

function factsOf({ url, file, facts }: ChatImage) {
  return {
    url,
    name: file.name,
    format: file.mediaType.replace("image/", "").toUpperCase(),
    width: facts.widthPx,
    height: facts.heightPx,
    bytes: file.sizeBytes,
    pages: facts.pages,
  };
}

/** For programs: where each line stands, in pixels of the image itself. */
function placesOf({ image, pages }: ReadImage): object {
  return {
    ...factsOf(image),
    read: pages.map((each) => ({
      page: each.page,
      width: each.pictureWidthPx,
      height: each.pictureHeightPx,
      turned: each.turned,
      lines: each.lines.slice(0, PLACED_LINES_MAX).map(({ text, confidence, box }) => {
        const { left, top, right, bottom } = boxInPicture(each, box);
        return { text, confidence: Math.round(confidence * 100) / 100, box: [left, top, right, bottom] };
      }),
    })),
  };
}

function fittingLines(question: string, read: readonly ReadImage[]): string[] {
  const wanted = termsOf(question);
  const rated = read
    .flatMap(({ text }) => text.split("\n"))
    .map((line) => ({ line, share: coverage(wanted, line) }))
    .filter(({ share }) => share >= FITTING);
  // The sort is stable: of equals, the first in the image goes first.
  return [...new Set(rated.toSorted((a, b) => b.share - a.share).map(({ line }) => line))].slice(
    0,
    LINES_MAX,
  );
}

/** Of each of the best passages, the sentence that says most to the question: each once, numbered as they are quoted. */
function quotes(question: string, passages: readonly Passage[]): Citation[] {
  const wanted = termsOf(question);
  const fitting = passages
    .filter(({ score, text, title }) => {
      if (score < SCORE_MIN) return false;
      const share = bestSentence(text, wanted, title)?.share ?? 0;
      return score >= SCORE_SURE || share >= FITTING;
    })
    .map((passage) => citationOf(passage, question));
  // Copies of a document say the same: the best one's stays.
  const unique = new Map<string, Citation>();
  for (const citation of fitting) {
    const words = citation.span.text.replaceAll(/\s+/g, " ");
    if (!unique.has(words)) unique.set(words, citation);
  }
  return [...unique.values()]
    .slice(0, QUOTES_MAX)
    .map((citation, at) => Object.assign(citation, { number: at + 1 }));
}

function knowledgeWords({ hasKnowledge }: BuiltinRequest, citations: readonly Citation[]): string {
  if (!hasKnowledge) return "This agent reads no part of the knowledge base.";
  if (citations.length === 0) return "The knowledge base holds nothing that fits the question.";
  const quoted = citations.map(
    ({ number, title, span }) => `“${span.text.replaceAll("\n", " ")}” [${number}] (${title})`,
  );
  return `From the knowledge base:\n\n${quoted.join("\n")}`;
}
