import { byRank } from "./by-rank.ts";

/** Figures of a set of questions; each but `medianMs` is from 0 to 1. */
export interface Figures {
  readonly questions: number;
  readonly hit1: number;
  readonly hit3: number;
  readonly mrr: number;
  /** Null: no question has an answer. */
  readonly answer: number | null;
  /** Null: no search was answered. */
  readonly medianMs: number | null;
}

/** Passages that are asked for, and the depth of the reciprocal rank: ten, as in MS MARCO (Nguyen et al. 2016). */
export const DEPTH = 10;
/** Passages in which an answer counts: the depth of hit@3. */
export const ANSWER_DEPTH = 3;
/** Depth of hit@3. */
export const HIT_DEPTH = 3;

/**
 * Returns the figures of outcomes; a question without a result counts as a miss. Ranks count passages, as a search returns
 * them.
 *
 * - `hit1`, `hit3`: share of the questions with an expected file among the first 1 or 3 passages ("success" in trec_eval,
 *   https://github.com/usnistgov/trec_eval/blob/main/m_success.c).
 * - `mrr`: mean of 1/rank, 0 beyond `DEPTH` (Voorhees, The TREC-8 Question Answering Track Report, 1999).
 * - `answer`: share of the questions with an answer that one of the first 3 passages contains it ("top-k retrieval
 *   accuracy", Karpukhin et al., Dense Passage Retrieval, 2020, https://arxiv.org/abs/2004.04906).
 */
export function figuresOf(outcomes: readonly (Scored & { readonly ms: number | null })[]): Figures {
  const withAnswer = outcomes.filter(({ answered }) => answered !== null);
  const share = (hits: number, of: number): number => (of === 0 ? 0 : hits / of);
  const hits = (depth: number): number =>
    share(outcomes.filter(({ rank }) => rank !== null && rank <= depth).length, outcomes.length);
  const reciprocals = outcomes.reduce((sum, { rank }) => sum + (rank === null ? 0 : 1 / rank), 0);
  return {
    questions: outcomes.length,
    hit1: hits(1),
    hit3: hits(HIT_DEPTH),
    mrr: share(reciprocals, outcomes.length),
    answer:
      withAnswer.length === 0
        ? null
        : share(withAnswer.filter(({ answered }) => answered).length, withAnswer.length),
    medianMs: median(outcomes.flatMap(({ ms }) => (ms === null ? [] : [ms]))),
  };
}

/** Result of a question. */
export interface Scored {
  /** Rank of the first passage from an expected file, from 1; null: none among them. */
  readonly rank: number | null;
  /** Whether one of the first `ANSWER_DEPTH` passages contains the answer; null: the question has none. */
  readonly answered: boolean | null;
}

/** A result of a search. */
interface FoundResult {
  readonly id: string;
  readonly score: number;
  readonly payload: { readonly content: string };
}

/** Scores the results of a question, of one search or of several together, and returns the first of them. */
export function scoreResults<R extends FoundResult>(
  results: readonly R[],
  isExpected: (result: R) => boolean,
  answer: string | undefined,
): Scored & { readonly first: readonly R[] } {
  const best = results.toSorted(byRank).slice(0, DEPTH);
  const first = best.slice(0, ANSWER_DEPTH);
  const at = best.findIndex(isExpected);
  const isIn = ({ payload }: R): boolean => containsAnswer(payload.content, answer ?? "");
  return { rank: at === -1 ? null : at + 1, answered: answer === undefined ? null : first.some(isIn), first };
}

/**
 * Returns whether a document is expected: by its id, by its path below the synced folder, by a folder above it (with a slash at the
 * end) or by a glob. `globOf` compiles what may match several paths, and returns undefined for a plain path.
 */
export function expectedDocuments(
  expect: readonly string[],
  globOf: (expected: string) => ((path: string) => boolean) | undefined,
): (path: string | undefined, id?: string) => boolean {
  const names = new Set(expect.map(comparablePath));
  const folders = [...names].filter((name) => name.endsWith("/"));
  const globs = [...names].flatMap((name) => globOf(name) ?? []);
  return (path, id) => {
    if (id !== undefined && names.has(id)) return true;
    if (path === undefined) return false;
    const own = comparablePath(path);
    return (
      names.has(own) ||
      folders.some((folder) => own.startsWith(folder)) ||
      globs.some((matches) => matches(own))
    );
  };
}

/** Whether a question counts as missed: its expected files are not among the first passages, or its answer is not. */
export function isMissed({ rank, answered }: Scored): boolean {
  return rank === null || rank > HIT_DEPTH || answered === false;
}

/** Returns a path as it is compared: some systems store names decomposed, and keyboards type them composed. */
function comparablePath(path: string): string {
  return path.replace(/^\.\//, "").normalize("NFC");
}

/** Whether a text contains an answer, where any run of white space equals any other. */
export function containsAnswer(text: string, answer: string): boolean {
  return foldSpace(text).includes(foldSpace(answer));
}

/** Replaces each run of white space with one space. */
function foldSpace(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  return upper === undefined || lower === undefined ? null : (lower + upper) / 2;
}
