import type { Citation } from "../../wire/chat.ts";
import { bestSentence, coverage, sentencesOf, termsOf } from "./sentences.ts";

/** A chunk of a resource that a search found, under the number by which an answer names it. */
export interface Passage {
  /** From 1. */
  readonly number: number;
  readonly resourceId: string;
  readonly title: string;
  readonly chunkId: string;
  readonly score: number;
  /** UTF-16 offset in the resource's content of the text behind `before`. */
  readonly start: number;
  /** With what the chunk repeats at either end. */
  readonly text: string;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

/** `[2]`, `[1, 3]`: how an answer names passages. */
const MARKS = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;
/** Share of a sentence's terms that a passage must hold to be what the sentence was taken from. */
const TAKEN_FROM = 0.6;
/** A sentence of fewer terms says too little to tell where it was taken from. */
const TELLING_TERMS = 3;

/**
 * What an answer takes from which passage: by the numbers it names; where it names none, by the words that its sentences
 * share with one. Pure. By number, then by place.
 */
export function citationsOf(answer: string, passages: readonly Passage[]): Citation[] {
  const claims = claimsOf(answer);
  const named = claims.filter(({ numbers }) => numbers.length > 0);
  const found =
    named.length > 0
      ? named.flatMap(({ numbers, text }) =>
          passages.filter(({ number }) => numbers.includes(number)).map((one) => citationOf(one, text)),
        )
      : claims.flatMap(({ text }) => sourceOf(text, passages));
  const unique = new Map(found.map((each) => [`${each.number} ${each.span.start}`, each]));
  return [...unique.values()].toSorted((a, b) => a.number - b.number || a.span.start - b.span.start);
}

/** A passage cited for what it says about these words: the sentence that holds most of them, else all of it. */
export function citationOf(passage: Passage, words: string): Citation {
  const { number, resourceId, title, chunkId, score, start, before = "", after = "" } = passage;
  // What is repeated stands elsewhere in the document.
  const text = passage.text.slice(before.length, passage.text.length - after.length);
  const sentence = bestSentence(text, termsOf(words), title) ?? { start: 0, end: text.length, text };
  return {
    type: "citation",
    number,
    resource_id: resourceId,
    title,
    chunk_id: chunkId,
    score,
    span: { start: start + sentence.start, end: start + sentence.end, text: sentence.text },
  };
}

interface Claim {
  readonly text: string;
  readonly numbers: readonly number[];
}

/** The sentences of an answer with the passages they name; marks behind a full stop belong to the sentence before. */
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
  const terms = termsOf(sentence);
  if (terms.size < TELLING_TERMS) return [];
  let best: { readonly passage: Passage; readonly share: number } | undefined;
  for (const passage of passages) {
    const share = coverage(terms, passage.text);
    if (share >= TAKEN_FROM && share > (best?.share ?? 0)) best = { passage, share };
  }
  return best === undefined ? [] : [citationOf(best.passage, sentence)];
}
