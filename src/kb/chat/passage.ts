import type { Citation } from "../../wire/chat.ts";
import { queryWords, type QueryWords } from "../lexical/word-match.ts";
import { pathOf, positionOf } from "../search/position.ts";
import type { FoundChunk } from "../store/search-index.ts";
import { bestSentence, sentencesOf, shareIn, type RatedSentence, type Sentence } from "./sentences.ts";

/** A chunk of a resource that a search found, with the number by which an answer cites it. */
export interface Passage extends FoundChunk {
  /** From 1. */
  readonly number: number;
  readonly score: number;
}

/** Citations in an answer: `[2]`, `[1, 3]`. */
const MARKS = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;
/** Least share of a sentence's terms in the passage that counts as its source. */
const SOURCE_SHARE_MIN = 0.6;
/** A sentence with fewer terms has no recognisable source. */
const SOURCE_TERMS_MIN = 3;

/**
 * Returns the citations of an answer: by the numbers in it, or, if it has none, by the words that its sentences share with a
 * passage. Sorted by number, then by position. Pure.
 */
export function citationsOf(answer: string, passages: readonly Passage[]): Citation[] {
  const claims = claimsOf(answer);
  const named = claims.filter(({ numbers }) => numbers.length > 0);
  const found =
    named.length > 0
      ? named.flatMap(({ numbers, text }) =>
          passages
            .filter(({ number }) => numbers.includes(number))
            .map((one) => citedFor(one, queryWords(text))),
        )
      : claims.flatMap(({ text }) => sourceOf(text, passages));
  const unique = new Map(found.map((each) => [`${each.number} ${each.span.start}`, each]));
  return [...unique.values()].toSorted((a, b) => a.number - b.number || a.span.start - b.span.start);
}

/** Returns the sentence of a passage that says most about some words, as a range of the passage without its repeated parts. */
export function bestSentenceOf(passage: Passage, words: QueryWords): RatedSentence | undefined {
  return bestSentence(ownText(passage), words, [passage.title, ...passage.headings].join(" "));
}

/** Cites a sentence of a passage, by default the whole passage. */
export function citationOf(passage: Passage, given: Sentence | undefined): Citation {
  const { number, resourceId, title, id, score, start, version, sha256, url } = passage;
  const { filePath, folderDescription } = passage;
  const text = ownText(passage);
  const sentence = given ?? { start: 0, end: text.length, text };
  const span = { start: start + sentence.start, end: start + sentence.end };
  const { lines, pages, locations } = positionOf(passage, span);
  return {
    type: "citation",
    number,
    resource_id: resourceId,
    title,
    path: pathOf(passage),
    chunk_id: id,
    score,
    span: { ...span, text: sentence.text },
    lines,
    ...(pages !== undefined && { pages }),
    ...(locations !== undefined && { locations }),
    version,
    ...(sha256 !== undefined && { sha256 }),
    ...(url !== null && { fileUrl: url }),
    ...(filePath !== undefined && { filePath }),
    ...(folderDescription !== undefined && { folderDescription }),
  };
}

/** Returns the text of a passage without its repeated parts, which belong to other positions of the document. */
function ownText({ text, before = "", after = "" }: Passage): string {
  return text.slice(before.length, text.length - after.length);
}

interface Claim {
  readonly text: string;
  readonly numbers: readonly number[];
}

/** Returns the sentences of an answer with the passages that they cite. A mark after a full stop belongs to the sentence before. */
function claimsOf(answer: string): Claim[] {
  const claims: Claim[] = [];
  for (const { text } of sentencesOf(answer)) {
    const leading = /^(?:\[[\d,\s]+\]\s*)+/.exec(text)?.[0] ?? "";
    const before = claims.at(-1);
    if (leading !== "" && before !== undefined) {
      claims[claims.length - 1] = { ...before, numbers: [...before.numbers, ...numbersIn(leading)] };
    }
    const rest = before === undefined ? text : text.slice(leading.length);
    const words = rest.replaceAll(MARKS, " ").trim();
    if (words !== "") claims.push({ text: words, numbers: numbersIn(rest) });
  }
  return claims;
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(MARKS)].flatMap(([, list = ""]) => list.split(",").map(Number));
}

function sourceOf(sentence: string, passages: readonly Passage[]): Citation[] {
  const words = queryWords(sentence);
  if (words.weights.filter((weight) => weight > 0).length < SOURCE_TERMS_MIN) return [];
  let best: { readonly passage: Passage; readonly share: number } | undefined;
  for (const passage of passages) {
    const share = shareIn(words, passage.text);
    if (share >= SOURCE_SHARE_MIN && share > (best?.share ?? 0)) best = { passage, share };
  }
  return best === undefined ? [] : [citedFor(best.passage, words)];
}

function citedFor(passage: Passage, words: QueryWords): Citation {
  return citationOf(passage, bestSentenceOf(passage, words));
}
