import { z } from "zod";
import { answerOf } from "./answers.ts";
import { ContextFields } from "./context.ts";
import { readFilter } from "./filter.ts";
import { Count, Id, Tier, WireInteger } from "./primitives.ts";
import { QUERY_CHARS_MAX } from "./search.ts";

/** Most questions, parts and settings of a request. The time of the request bounds their searches. */
export const EVAL_QUESTIONS_MAX = 200;
export const EVAL_PARTS_MAX = 32;
export const EVAL_SETTINGS_MAX = 8;
/** Longest time for which a request asks questions, and its default. */
export const EVAL_SECONDS_MAX = 300;
export const EVAL_SECONDS_DEFAULT = 60;

/** Files that answer a question, and the text that a passage of them must contain. */
export const QuestionFields = {
  question: z.string().trim().min(1).max(QUERY_CHARS_MAX),
  /** The list first: its message names both. */
  expect: z.union([
    z
      .array(z.string().trim().min(1).max(4096), { error: "expected a path or a list of paths" })
      .min(1)
      .max(100),
    z
      .string()
      .trim()
      .min(1)
      .max(4096)
      .transform((path) => [path]),
  ]),
  answer: z.string().trim().min(1).max(4000).optional(),
};

/** A question of a request. Its expected files are paths, folders with a slash at the end, or ids of documents. */
export const EvalQuestion = z
  .object({
    ...QuestionFields,
    expect: QuestionFields.expect.meta({
      description:
        "What answers the question, one or several: the string path of a document's metadata, a folder with a slash at the end, or a document's id.",
    }),
  })
  .meta({ id: "EvalQuestion" });
export type EvalQuestion = z.infer<typeof EvalQuestion>;

const { expand, max_tokens, max_per_document, collapse } = ContextFields;
/** The fields of a search that an evaluation compares. */
export const SettingFields = { expand, max_tokens, max_per_document, collapse };

const EvalSetting = z.object({
  ...SettingFields,
  filter: z
    .unknown()
    .transform(readFilter)
    .meta({ type: "object", description: "Conditions on metadata; docs/API.md has the forms." })
    .optional(),
});

/** Body of `POST /v1/eval` (an addition). */
export const EvalBody = z
  .object({
    questions: z.array(EvalQuestion).min(1).max(EVAL_QUESTIONS_MAX),
    parts: z
      .array(z.object({ collection_id: z.string().min(1).max(200), owner_id: z.string().min(1).max(256) }))
      .min(1)
      .max(EVAL_PARTS_MAX)
      .describe("Where to search. Parts of one tier are searched together."),
    settings: z
      .array(EvalSetting)
      .min(1)
      .max(EVAL_SETTINGS_MAX)
      .default([{}])
      .describe("Fields of a search to compare. Default: none."),
    timeout_seconds: WireInteger.pipe(z.int().min(1).max(EVAL_SECONDS_MAX))
      .default(EVAL_SECONDS_DEFAULT)
      .describe("Time after which no further question is asked."),
  })
  .meta({ id: "EvalBody" });
export type EvalBody = z.infer<typeof EvalBody>;

const Share = z.number().min(0).max(1);

/** A question whose file is not among the first three passages, or whose answer is not in them. */
export const EvalMiss = z
  .object({
    question: Count.describe("Its index in the request, from 0."),
    rank: z
      .int()
      .min(1)
      .nullable()
      .describe("Of the first passage that was expected; null: none of the first 10."),
    answered: z.boolean().nullable().describe("Null: the question has no answer."),
    came: z
      .array(z.object({ resourceId: Id, path: z.string().nullable(), score: Share }))
      .describe("The first three passages."),
  })
  .meta({ id: "EvalMiss" });

/** The figures of the questions in one tier and setting. */
export const EvalResult = z
  .object({
    tier: Tier,
    setting: Count.describe("Its index in the request, from 0."),
    hit1: Share.describe("Share of the questions with an expected file as the first passage."),
    hit3: Share.describe("Share of those with one among the first three."),
    mrr: Share.describe("Mean of 1/rank, to rank 10."),
    answer: Share.nullable().describe(
      "Share of the answers in the first three passages; null without answers.",
    ),
    medianMs: z.number().min(0),
    fallbacks: Count.describe(
      "Questions that were searched with less than the tier promises, as of a missing model.",
    ),
    misses: z.array(EvalMiss),
  })
  .meta({ id: "EvalResult" });
export type EvalResult = z.infer<typeof EvalResult>;

/** Answer of `POST /v1/eval`. */
export const EvalAnswer = answerOf(
  z.object({
    asked: Count.describe(
      "The first so many questions were asked in every tier and setting, before the time ended.",
    ),
    questions: Count.describe("Of the request."),
    results: z
      .array(EvalResult)
      .describe("By tier, then in the order of the settings. Empty if none was asked."),
  }),
).meta({ id: "EvalAnswer" });
export type EvalAnswer = z.infer<typeof EvalAnswer>;
