import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { EVAL_SETTINGS_MAX, type EvalAnswer, EvalQuestion, SettingFields } from "../wire/evaluation.ts";
import { Tier } from "../wire/primitives.ts";
import { countTokens } from "../lib/tokens.ts";
import { ANSWER_TOKENS, cutText, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { SearchInput } from "./search-schema.ts";
import { findSources } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Most questions of a call: clients wait for a minute, and a search of a large tier takes a second. */
const QUESTIONS_MAX = 50;
/** Time for which a call asks questions, in seconds: below the patience of `service.ts`. */
const ASK_SECONDS = 45;
const QUESTION_CHARS_SHOWN = 100;

/** Arguments of the tool `evaluate`. */
export const EvaluateInput = z.object({
  questions: z
    .array(EvalQuestion)
    .min(1)
    .max(QUESTIONS_MAX)
    .describe(
      "Questions with what answers them: question, expect (path, folder/ or document_id), answer (text).",
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
});
export type EvaluateInput = z.infer<typeof EvaluateInput>;

const Share = z.number().nullable();

/** Result of the tool `evaluate`. */
export const EvaluateOutput = z.object({
  asked: z.number().describe("The first so many questions were asked; ask the others with another call."),
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
    }),
  ),
  misses: z
    .array(
      z.object({
        question: z.number().describe("Its index in questions."),
        tier: Tier,
        setting: z.number(),
        rank: z.number().nullable(),
        answered: z.boolean().nullable(),
        came: z.array(z.object({ document_id: z.string(), path: z.string().nullable(), score: z.number() })),
      }),
    )
    .describe("As many as fit into an answer."),
});
export type EvaluateOutput = z.infer<typeof EvaluateOutput>;

/** Measures how well searches of the chosen sources find what answers questions. */
export async function evaluateSearches(
  reached: Reached,
  files: KnownFiles,
  { questions, settings, ...choice }: EvaluateInput,
  signal: AbortSignal,
): Promise<ToolOutput<EvaluateOutput>> {
  const sources = await findSources(reached, files, choice, signal);
  if (sources.length === 0) throw new KbsyncError("there are no documents", { code: "source_unknown" });
  const parts = sources.map(({ collection_id, owner_id }) => ({ collection_id, owner_id }));
  const request = { questions, parts, settings, timeout_seconds: ASK_SECONDS };
  const report = await reached.service.evaluate(request, signal);
  if (report === undefined)
    throw new KbsyncError("the service does not evaluate searches", {
      code: "eval_unsupported",
      hint: "`kbsync eval` on the machine of the folders does, with searches alone.",
    });
  const misses = report.results.flatMap(({ tier, setting, misses: own }) =>
    own.map(({ came, ...miss }) => ({
      ...miss,
      tier,
      setting,
      came: came.map(({ resourceId, ...rest }) => ({ document_id: resourceId, ...rest })),
    })),
  );
  const results = report.results.map(
    ({ tier, setting, hit1, hit3, mrr, answer, medianMs, fallbacks, misses: own }) => ({
      tier,
      setting,
      hit1,
      hit3,
      mrr,
      answer,
      median_ms: medianMs,
      fallbacks,
      missed: own.length,
    }),
  );
  const left = ANSWER_TOKENS - countTokens(JSON.stringify(results));
  const data = { asked: report.asked, results, misses: [...fitting(misses, left)] };
  return { data, text: reportText(data, report, questions) };
}

function reportText(
  { results, misses }: EvaluateOutput,
  { asked, questions: of }: EvalAnswer["data"],
  questions: EvaluateInput["questions"],
): string {
  const rows = results.map(
    ({ tier, setting, hit1, hit3, mrr, answer, median_ms, fallbacks, missed }) =>
      `${tier}, setting ${setting}: hit@1 ${shown(hit1)}, hit@3 ${shown(hit3)}, MRR ${shown(mrr)}, answer ${shown(answer)}, median ${Math.round(median_ms)} ms, ${missed} missed` +
      (fallbacks === 0 ? "" : `, ${fallbacks} searched with less than the tier promises`),
  );
  const lines = misses.map(({ tier, setting, question, rank, came }) => {
    const found = came.map(({ path, document_id }) => path ?? document_id).join(", ");
    const name = cutText(questions[question]?.question ?? "", QUESTION_CHARS_SHOWN);
    return `missed in ${tier}, setting ${setting}: ${name} (rank ${rank ?? "none"}; came ${found === "" ? "nothing" : found})`;
  });
  return [`${asked} of ${of} questions asked`, ...rows, ...lines].join("\n");
}

function shown(share: number | null): string {
  return share === null ? "-" : share.toFixed(3);
}
