import { z } from "zod";
import { TOKENIZER } from "../lib/tokens.ts";
import { Count, Id, WireInteger } from "./primitives.ts";

/** Tokens of an expanded answer by default: what a model reads at a glance, and some four times an answer without. */
export const ANSWER_TOKENS_DEFAULT = 4000;
/** Fewest and most tokens of an answer: a sentence, and half of a large model's window. */
export const ANSWER_TOKENS_MIN = 50;
export const ANSWER_TOKENS_MAX = 100_000;
/** Most chunks on each side of a hit. */
export const NEIGHBOURS_MAX = 20;
/** Results that a search may skip, or take of one document. */
const RESULTS_MAX = 100;
/** Documents that a result lists of those with nearly its text. */
export const DUPLICATE_DOCUMENTS_MAX = 10;

/** The text to return around each hit: its section, the chunks next to it, or so many chunks on each side. */
export const Expand = z
  .union([z.enum(["section", "neighbours"]), WireInteger.pipe(z.int().min(1).max(NEIGHBOURS_MAX))])
  .describe(
    "section: the text below the heading above the hit. neighbours: the chunks before and after it. A number: so many chunks on each side. Hits whose texts touch are one result.",
  );
export type Expand = z.infer<typeof Expand>;

/** Fields of a search that choose how much its results say (additions). */
export const ContextFields = {
  expand: Expand.optional(),
  max_tokens: WireInteger.pipe(z.int().min(ANSWER_TOKENS_MIN).max(ANSWER_TOKENS_MAX))
    .optional()
    .describe(
      `Most tokens of text, as the tokenizer ${TOKENIZER} counts. Default with expand: ${ANSWER_TOKENS_DEFAULT}; else no limit.`,
    ),
  max_per_document: WireInteger.pipe(z.int().min(1).max(RESULTS_MAX))
    .optional()
    .describe("Most hits of one document."),
  collapse: z
    .boolean()
    .optional()
    .describe("Returns one of several hits with nearly the same text; duplicates counts the others."),
  offset: WireInteger.pipe(
    z
      .int()
      .min(0)
      .max(RESULTS_MAX - 1),
  )
    .optional()
    .describe("Results to skip: nextOffset of the previous answer to the same search."),
};

/** The fields that a client sends. */
export type SearchContext = Partial<z.output<z.ZodObject<typeof ContextFields>>>;

/** A chunk that a search found, as a range of its document's text. */
const PassageHit = z
  .object({
    id: z.string().describe("Of the chunk."),
    score: z.number().min(0).max(1),
    start: Count,
    end: Count,
  })
  .meta({ id: "PassageHit" });
export type PassageHit = z.infer<typeof PassageHit>;

/** The additions of a result. */
export const PassageFields = {
  hits: z
    .array(PassageHit)
    .optional()
    .describe("With expand: the hits within the result, by descending score; the first one gives its id."),
  duplicates: z
    .int()
    .min(1)
    .optional()
    .describe(
      "With collapse: further hits with nearly the text of a hit of this result. Absent if there are none.",
    ),
  duplicateDocuments: z
    .array(z.object({ resourceId: Id, title: z.string() }))
    .max(DUPLICATE_DOCUMENTS_MAX)
    .optional()
    .describe("The other documents that these are of; the first ones of many."),
};

/** The part of its budget that an answer took. */
export const Budget = z
  .object({
    tokenizer: z.string().describe("How tokens are counted; docs/API.md has the rule."),
    tokens: Count.describe("Of the answer's text."),
    maxTokens: Count.nullable().describe("Null: no limit."),
    nextOffset: Count.nullable().describe("Offset of the results that follow; null if there are none."),
  })
  .meta({ id: "Budget" });
export type Budget = z.infer<typeof Budget>;
