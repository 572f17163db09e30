import { setTimeout as pause } from "node:timers/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { compareResults, type IdentifiedResult, questionId } from "../../lib/compare-results.ts";
import { hasWildcard, pathGlob } from "../../lib/path-glob.ts";
import {
  DEPTH,
  expectedDocuments,
  type Figures,
  figuresOf,
  isMissed,
  scoreResults,
} from "../../lib/retrieval-figures.ts";
import type { FoundResult } from "../../wire/answers.ts";
import type { EvalAnswer, EvalBody, EvalQuestion, EvalResult } from "../../wire/evaluation.ts";
import { Tier } from "../../wire/primitives.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noCollection } from "./list.ts";
import { queryResources } from "./query.ts";
import { openQuestionVectors } from "./question-vectors.ts";
import type { Searched } from "./receipt.ts";

/** Longest wait for the rate without a look at whether the service ends. */
const PAUSE_MS_MAX = 1000;

/** How an evaluation takes its turns with other requests. */
export interface EvalTurns {
  /** Aborted if the client leaves. */
  readonly signal: AbortSignal;
  /** Counts a search against the rate of the caller's key. Throws `rate_limited`, and what a key that has ended is refused with. */
  readonly take: () => Promise<void>;
  /** Runs a search when it is the account's turn. */
  readonly during: <T>(search: () => Promise<T>) => Promise<T>;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** What a question gave in one tier and setting. */
interface Outcome extends IdentifiedResult {
  readonly ms: number;
  readonly isFallback: boolean;
  /** Without texts, which may be long. */
  readonly came: EvalResult["misses"][number]["came"];
}

/** A tier with its parts, in one setting. */
interface Row {
  readonly tier: Tier;
  readonly parts: readonly Searched[];
  readonly setting: EvalBody["settings"][number];
  /** Its index. */
  readonly at: number;
  readonly outcomes: Outcome[];
}

/**
 * Asks questions whose answers are known, one search at a time, and returns how well searches find them. Every question is asked in
 * all tiers and settings before the next one; when the time ends, only the questions before count. The time also ends when the service
 * does, and when a search fails that may succeed later. Throws the refusal of an unknown collection, `EvalTurns.take`, the signal's
 * reason, and the failure of a search if no question was asked before.
 */
export async function evaluate(
  kb: KnowledgeBase,
  accountId: string,
  { questions, parts, settings, before, timeout_seconds: seconds }: EvalBody,
  turns: EvalTurns,
): Promise<EvalAnswer["data"]> {
  const endMs = turns.nowMs() + seconds * 1000;
  const searched = await findParts(kb, accountId, parts);
  const rows = Tier.options.flatMap((tier) => {
    const own = searched.filter((part) => part.tier === tier);
    return own.length === 0
      ? []
      : settings.map((setting, at): Row => ({ tier, parts: own, setting, at, outcomes: [] }));
  });
  let asked = 0;
  for (const question of questions) {
    let outcomes: readonly Outcome[] | undefined;
    try {
      outcomes = await askInAll(kb, accountId, question, rows, endMs, turns);
    } catch (error) {
      turns.signal.throwIfAborted();
      // The answers so far may have been paid for.
      if (asked === 0 || !(error instanceof KbsyncError) || !error.retryable) throw error;
    }
    if (outcomes === undefined) break;
    rows.forEach((row, at) => row.outcomes.push(...outcomes.slice(at, at + 1)));
    asked += 1;
  }
  const results = asked === 0 ? [] : rows.map((row) => resultOf(row, before));
  return { asked, questions: questions.length, results };
}

async function findParts(
  kb: KnowledgeBase,
  accountId: string,
  parts: EvalBody["parts"],
): Promise<readonly Searched[]> {
  const found = new Map<string, Searched>();
  for (const { collection_id: collectionId, owner_id } of parts) {
    const ownerId = owner_id.toWellFormed();
    const tier = await kb.collections.tierOf(accountId, collectionId);
    if (tier === undefined) throw noCollection(collectionId, "parts");
    found.set(JSON.stringify([collectionId, ownerId]), { scope: { accountId, collectionId, ownerId }, tier });
  }
  return [...found.values()];
}

/** Asks a question in all rows. Undefined: the time ended before. */
async function askInAll(
  kb: KnowledgeBase,
  accountId: string,
  question: EvalQuestion,
  rows: readonly Row[],
  endMs: number,
  turns: EvalTurns,
): Promise<readonly Outcome[] | undefined> {
  const outcomes: Outcome[] = [];
  const { question: query, expect, answer } = question;
  const names = expectedDocuments(expect, (text) => (hasWildcard(text) ? pathGlob(text) : undefined));
  const isExpected = ({ payload }: FoundResult): boolean => names(payload.filePath, payload.resourceId);
  const vectors = openQuestionVectors(turns.nowMs);
  for (const { parts, setting } of rows) {
    const results: FoundResult[] = [];
    const savedMs = vectors.savedMs();
    let isFallback = false;
    let ms = 0;
    for (const part of parts) {
      if (!(await takeTurn(kb, turns, endMs))) return undefined;
      const [found, tookMs] = await turns.during(async () => {
        const startMs = turns.nowMs();
        const body = { query, top_k: DEPTH, ...setting };
        const outcome = await queryResources(kb, accountId, part, body, vectors.once);
        return [outcome, turns.nowMs() - startMs] as const;
      });
      kb.usage.noteSearch(accountId, tookMs / 1000);
      results.push(...found.results);
      isFallback ||= found.fallback !== undefined;
      ms += tookMs;
    }
    ms += vectors.savedMs() - savedMs;
    const { first, ...scored } = scoreResults(results, isExpected, answer);
    const came = first.map(({ score, payload: { resourceId, filePath } }) => ({
      resourceId,
      path: filePath ?? null,
      score,
    }));
    outcomes.push({ id: questionId(question), ...scored, ms, isFallback, came });
  }
  return outcomes;
}

/** Waits for the turn of a search. False: there is none before the end. */
async function takeTurn(
  kb: Pick<KnowledgeBase, "isEnding">,
  { take, nowMs, signal }: EvalTurns,
  endMs: number,
): Promise<boolean> {
  for (;;) {
    signal.throwIfAborted();
    if (nowMs() >= endMs || kb.isEnding()) return false;
    try {
      await take();
      return true;
    } catch (error) {
      if (!(error instanceof KbsyncError) || codeOf(error) !== "rate_limited") throw error;
      const waitMs = (error.retryAfterSeconds ?? 1) * 1000;
      if (nowMs() + waitMs >= endMs) return false;
      await pause(Math.min(waitMs, PAUSE_MS_MAX), undefined, { signal });
    }
  }
}

/** The result of a row, compared with earlier results of the same tier and setting if there are any. */
function resultOf({ tier, at: setting, outcomes }: Row, before: EvalBody["before"]): EvalResult {
  const figures = figuresOf(outcomes);
  const misses = outcomes.flatMap(({ rank, answered, came }, question) =>
    isMissed({ rank, answered }) ? [{ question, rank, answered, came }] : [],
  );
  const fallbacks = outcomes.filter(({ isFallback }) => isFallback).length;
  const earlier = before?.filter((result) => result.tier === tier && result.setting === setting) ?? [];
  return {
    tier,
    setting,
    ...sharesOf(figures),
    medianMs: figures.medianMs ?? 0,
    fallbacks,
    misses,
    outcomes: outcomes.map(({ id, rank, answered }) => ({ id, rank, answered })),
    comparison:
      earlier.length === 0
        ? null
        : compared(
            earlier.flatMap((result) => result.outcomes),
            outcomes,
          ),
  };
}

function compared(
  earlier: readonly IdentifiedResult[],
  outcomes: readonly Outcome[],
): NonNullable<EvalResult["comparison"]> {
  const numbered = outcomes.map((outcome, question) => ({ ...outcome, question }));
  const { before, now, worse, better } = compareResults(earlier, numbered);
  return {
    questions: now.questions,
    before: sharesOf(before),
    now: sharesOf(now),
    worse: [...worse],
    better: [...better],
  };
}

function sharesOf({ hit1, hit3, mrr, answer }: Figures): Pick<Figures, "hit1" | "hit3" | "mrr" | "answer"> {
  return { hit1, hit3, mrr, answer };
}
