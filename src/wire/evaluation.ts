import { z } from "zod";
import { answerOf } from "./answers.ts";
import { ContextFields } from "./context.ts";
import { readFilter } from "./filter.ts";
import { hasWildcard } from "../lib/path-glob.ts";
import { STARTER_MAX } from "../lib/markup/starter-questions.ts";
import { Count, Id, Tier, WireInteger } from "./primitives.ts";
import { QUERY_CHARS_MAX } from "./search.ts";

/** Most questions, parts and settings of a request. The time of the request bounds their searches. */
export const EVAL_QUESTIONS_MAX = 200;
export const EVAL_PARTS_MAX = 32;
export const EVAL_SETTINGS_MAX = 8;
/** Most earlier results to compare with: those of 32 answers in three tiers. */
const EVAL_EARLIER_MAX = 96;
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

/** Most globs of a question, and their length: each is compared with each passage. */
export const EVAL_GLOBS_MAX = 10;
export const EVAL_GLOB_CHARS_MAX = 200;

/** A question of a request. Its expected files are paths, folders with a slash at the end, globs, or ids of documents. */
export const EvalQuestion = z
  .object({
    ...QuestionFields,
    expect: QuestionFields.expect
      .superRefine((all, context) => {
        const globs = all.filter(hasWildcard);
        const isLong = globs.some(({ length }) => length > EVAL_GLOB_CHARS_MAX);
        if (!isLong && globs.length <= EVAL_GLOBS_MAX) return;
        const message = `at most ${EVAL_GLOBS_MAX} globs of at most ${EVAL_GLOB_CHARS_MAX} characters`;
        context.addIssue({ code: "custom", message });
      })
      .meta({
        description:
          "What answers the question, one or several: the string path of a document's metadata, a folder with a slash at the end, a glob (`*`, `?`, `**`), or a document's id.",
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

/** How a question was answered. */
const Scored = {
  rank: z
    .int()
    .min(1)
    .nullable()
    .describe("Of the first passage that was expected; null: none of the first 10."),
  answered: z.boolean().nullable().describe("Null: the question has no answer."),
};

/** The result of a question. */
export const EvalOutcome = z
  .object({
    id: z.string().min(1).max(32).describe("Changes with the question, what is expected and the answer."),
    ...Scored,
  })
  .meta({ id: "EvalOutcome" });

/** A result of an earlier answer; its other fields are ignored. */
const EvalEarlier = z.object({
  tier: Tier,
  setting: z.int().min(0),
  outcomes: z.array(EvalOutcome).max(EVAL_QUESTIONS_MAX),
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
    before: z
      .array(EvalEarlier)
      .max(EVAL_EARLIER_MAX)
      .optional()
      .describe(
        "`results` of earlier answers, to compare with: those of the same tier and index of the setting.",
      ),
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
    ...Scored,
    came: z
      .array(z.object({ resourceId: Id, path: z.string().nullable(), score: Share }))
      .describe("The first three passages."),
  })
  .meta({ id: "EvalMiss" });

const Figures = {
  hit1: Share.describe("Share of the questions with an expected file as the first passage."),
  hit3: Share.describe("Share of those with one among the first three."),
  mrr: Share.describe("Mean of 1/rank, to rank 10."),
  answer: Share.nullable().describe(
    "Share of the answers in the first three passages; null without answers.",
  ),
};

const EvalChange = z
  .object({
    question: Count.describe("Its index in the request, from 0."),
    before: z.object(Scored),
    now: z.object(Scored),
  })
  .meta({ id: "EvalChange" });

/** A result compared with an earlier one. */
export const EvalComparison = z
  .object({
    questions: Count.describe("In both, with all that is asked unchanged. The others do not count here."),
    before: z.object(Figures),
    now: z.object(Figures),
    worse: z.array(EvalChange).describe("An expected file ranks lower, or the answer is gone."),
    better: z.array(EvalChange),
  })
  .meta({ id: "EvalComparison" });

/** The figures of the questions in one tier and setting. */
export const EvalResult = z
  .object({
    tier: Tier,
    setting: Count.describe("Its index in the request, from 0."),
    ...Figures,
    medianMs: z.number().min(0),
    fallbacks: Count.describe(
      "Questions that were searched with less than the tier promises, as of a missing model.",
    ),
    misses: z.array(EvalMiss),
    outcomes: z.array(EvalOutcome).describe("Of the questions that were asked, in their order."),
    comparison: EvalComparison.nullable().describe("With `before`; null if that has no such result."),
  })
  .meta({ id: "EvalResult" });
export type EvalResult = z.infer<typeof EvalResult>;

/** Query of `GET /v1/eval/starter` (an addition). */
export const StarterQuery = z.object({
  collectionId: z.string().min(1),
  ownerId: z.string().min(1),
  limit: WireInteger.pipe(z.int().min(1).max(STARTER_MAX)).default(STARTER_MAX),
});
export type StarterQuery = z.infer<typeof StarterQuery>;

/** Answer of `GET /v1/eval/starter`. */
export const StarterAnswer = answerOf(
  z.object({
    questions: z
      .array(
        z.object({
          question: z.string().describe("A heading that one document alone has."),
          expect: z.string().describe("The path of the document, or its id if it has none."),
          answer: z.string().optional().describe("The beginning of the sentence below the heading."),
        }),
      )
      .describe("Spread evenly over the documents."),
    headings: Count.describe("Headings to choose from."),
    isComplete: z.boolean().describe("False: there are more documents than it reads."),
  }),
).meta({ id: "StarterAnswer" });
export type StarterAnswer = z.infer<typeof StarterAnswer>;

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
