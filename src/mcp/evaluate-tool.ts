import { z } from "zod";
import { questionId } from "../lib/compare-results.ts";
import { KbsyncError } from "../lib/failure.ts";
import { countTokens } from "../lib/tokens.ts";
import { EVAL_SETTINGS_MAX, type EvalAnswer, EvalQuestion, SettingFields } from "../wire/evaluation.ts";
import { Tier } from "../wire/primitives.ts";
import { ANSWER_TOKENS, Cursor, cutText, fitting, NextCursor } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { SearchInput } from "./search-schema.ts";
import { findSources } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Most questions of a call: clients wait for a minute, and a search of a large tier takes a second. */
const QUESTIONS_MAX = 50;
/** Most ranks of a call, of all tiers and settings: each takes some six tokens of the answer. */
const RANKS_MAX = 400;
/** Most earlier results to compare with. */
const EARLIER_MAX = 96;
/** Time for which a call asks questions, in seconds: below the patience of `service.ts`. */
const ASK_SECONDS = 45;
const QUESTION_CHARS_SHOWN = 100;

const Index = z.int().min(0);
const Ranks = z.array(z.int().min(1).nullable()).max(QUESTIONS_MAX);
const Answers = z.array(z.boolean().nullable()).max(QUESTIONS_MAX);

/** Arguments of the tool `evaluate`. */
export const EvaluateInput = z.object({
  questions: z
    .array(EvalQuestion)
    .min(1)
    .max(QUESTIONS_MAX)
    .describe(
      "Questions with what answers them: question, expect (path, folder/, glob or document_id), answer (text).",
    ),
  source: SearchInput.shape.source,
  collection: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      "Search only this collection: its tier, or its id. Default: every tier in use, each by itself.",
    ),
  settings: z
    .array(z.object({ ...SettingFields, filter: z.record(z.string(), z.unknown()).optional() }))
    .min(1)
    .max(EVAL_SETTINGS_MAX)
    .default([{}])
    .describe("Fields of a search to compare, as in search_passages. Default: none."),
  before: z
    .array(z.object({ tier: Tier, setting: Index, first: Index, ranks: Ranks, answers: Answers }))
    .max(EARLIER_MAX)
    .optional()
    .describe("results of earlier calls with the same questions and settings, to compare with."),
  cursor: Cursor.describe(
    "next_cursor of the previous answer to the same arguments: asks the questions from there on.",
  ),
});
export type EvaluateInput = z.infer<typeof EvaluateInput>;

const Share = z.number().nullable();

/** Result of the tool `evaluate`. */
export const EvaluateOutput = z.object({
  asked: z.number().describe("Questions of this call. Figures are of these alone."),
  results: z.array(
    z.object({
      tier: Tier,
      setting: z.number().describe("Its index in settings."),
      hit1: Share,
      hit3: Share,
      mrr: Share,
      answer: Share.describe("Share of the answers in the first three passages; null without answers."),
      median_ms: z.number(),
      fallbacks: z.number().describe("Questions that were searched with less than the tier promises."),
      missed: z.number(),
      first: z.number().describe("Index of the first question of this call."),
      ranks: z.array(z.number().nullable()).describe("Of each question from first on; null: not found."),
      answers: z.array(z.boolean().nullable()).describe("Whether the answer was found; null: there is none."),
      worse: z.array(z.number()).nullable().describe("Indices of questions; null: not in before."),
      better: z.array(z.number()).nullable(),
    }),
  ),
  misses: z.array(
    z.object({
      question: z.number().describe("Its index in questions."),
      tier: Tier,
      setting: z.number(),
      rank: z.number().nullable(),
      answered: z.boolean().nullable(),
      came: z.array(z.object({ document_id: z.string(), path: z.string().nullable(), score: z.number() })),
    }),
  ),
  next_cursor: NextCursor,
});
export type EvaluateOutput = z.infer<typeof EvaluateOutput>;

type Report = EvalAnswer["data"];

/** Measures how well searches of the chosen sources find what answers questions. */
export async function evaluateSearches(
  reached: Reached,
  files: KnownFiles,
  { questions, settings, before, cursor, ...choice }: EvaluateInput,
  signal: AbortSignal,
): Promise<ToolOutput<EvaluateOutput>> {
  const sources = await findSources(reached, files, choice, signal);
  if (sources.length === 0) throw new KbsyncError("there are no documents", { code: "source_unknown" });
  const parts = sources.map(({ collection_id, owner_id }) => ({ collection_id, owner_id }));
  const start = positionOf(cursor, questions.length);
  const rows = new Set(sources.map(({ collection }) => collection)).size * settings.length;
  const some = questions.slice(start.question, start.question + Math.ceil(RANKS_MAX / rows));
  const report = await reached.service.evaluate(
    {
      questions: some,
      parts,
      settings,
      timeout_seconds: ASK_SECONDS,
      ...(before && { before: before.map((result) => earlierOf(result, questions)) }),
    },
    signal,
  );
  if (report === undefined)
    throw new KbsyncError("the service does not evaluate searches", {
      code: "eval_unsupported",
      hint: "`kbsync eval` on the machine of the folders does, with searches alone.",
    });
  const results = resultsOf(report, start.question);
  const missed = missesOf(report, start.question);
  const [skipped, rest] = [missed.slice(0, start.misses), missed.slice(start.misses)];
  const misses = [...fitting(rest, ANSWER_TOKENS - countTokens(JSON.stringify(results)))];
  const cut = rest[misses.length];
  const next = { question: start.question + report.asked, misses: 0 };
  if (cut !== undefined) {
    next.question = cut.question;
    next.misses = [...skipped, ...misses].filter(({ question }) => question === cut.question).length;
  }
  const isEnd = next.question >= questions.length;
  const next_cursor = isEnd ? null : `${next.question}.${next.misses}`;
  const data = { asked: report.asked, results, misses, next_cursor };
  return { data, text: reportText(data, questions) };
}

/** A question, and how many of its misses were returned. */
interface Position {
  question: number;
  misses: number;
}

function positionOf(cursor: string | undefined, questions: number): Position {
  const found = /^(\d{1,9})\.(\d{1,9})$/.exec(cursor ?? "0.0");
  const [question, misses] = [Number(found?.[1]), Number(found?.[2])];
  if (question < questions) return { question, misses };
  throw new KbsyncError(`${cursor ?? ""} is no cursor of these questions`, {
    code: "cursor_invalid",
    hint: "Send next_cursor of the answer to the same arguments, or none.",
  });
}

function earlierOf(
  { tier, setting, first, ranks, answers }: NonNullable<EvaluateInput["before"]>[number],
  questions: EvaluateInput["questions"],
) {
  const outcomes = questions.slice(first, first + ranks.length).map((question, at) => ({
    id: questionId(question),
    rank: ranks[at] ?? null,
    answered: answers[at] ?? null,
  }));
  return { tier, setting, outcomes };
}

function resultsOf({ results }: Report, first: number): EvaluateOutput["results"] {
  return results.map(({ misses, medianMs, outcomes, comparison, ...row }) => {
    const indices = (of: "worse" | "better"): number[] | null =>
      comparison && comparison[of].map(({ question }) => first + question);
    return {
      ...row,
      median_ms: medianMs,
      missed: misses.length,
      first,
      ranks: outcomes.map(({ rank }) => rank),
      answers: outcomes.map(({ answered }) => answered),
      worse: indices("worse"),
      better: indices("better"),
    };
  });
}

/** The misses by question, so that a page ends at one. */
function missesOf({ results }: Report, first: number): EvaluateOutput["misses"] {
  return results
    .flatMap(({ tier, setting, misses }) =>
      misses.map(({ came, question, ...miss }) => ({
        ...miss,
        question: first + question,
        tier,
        setting,
        came: came.map(({ resourceId, ...rest }) => ({ document_id: resourceId, ...rest })),
      })),
    )
    .toSorted((a, b) => a.question - b.question);
}

function reportText(
  { asked, results, misses, next_cursor: cursor }: EvaluateOutput,
  questions: EvaluateInput["questions"],
): string {
  const rows = results.map(
    ({ tier, setting, hit1, hit3, mrr, answer, median_ms, fallbacks, missed, worse, better }) =>
      `${tier}, setting ${setting}: hit@1 ${shown(hit1)}, hit@3 ${shown(hit3)}, MRR ${shown(mrr)}, answer ${shown(answer)}, median ${Math.round(median_ms)} ms, ${missed} missed` +
      (fallbacks === 0 ? "" : `, ${fallbacks} searched with less than the tier promises`) +
      (worse === null ? "" : `, ${worse.length} got worse, ${better?.length ?? 0} better`),
  );
  const lines = misses.map(({ tier, setting, question, rank, came }) => {
    const found = came.map(({ path, document_id }) => path ?? document_id).join(", ");
    const name = cutText(questions[question]?.question ?? "", QUESTION_CHARS_SHOWN);
    return `missed in ${tier}, setting ${setting}: ${name} (rank ${rank ?? "none"}; came ${found === "" ? "nothing" : found})`;
  });
  const more = cursor === null ? [] : [`[More: call evaluate with the same arguments and cursor ${cursor}.]`];
  return [`${asked} of ${questions.length} questions asked`, ...rows, ...lines, ...more].join("\n");
}

function shown(share: number | null): string {
  return share === null ? "-" : share.toFixed(3);
}
