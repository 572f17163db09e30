import { z } from "zod";
import { TOKENIZER } from "../lib/tokens.ts";
import { Count, WireInteger } from "./primitives.ts";

/** Tokens of an expanded answer by default: what a model reads at a glance, and some four times an answer without. */
export const ANSWER_TOKENS_DEFAULT = 4000;
/** Fewest and most tokens of an answer: a sentence, and half of a large model's window. */
export const ANSWER_TOKENS_MIN = 50;
export const ANSWER_TOKENS_MAX = 100_000;
/** Most chunks on each side of a hit. */
export const NEIGHBOURS_MAX = 20;
/** The text to return around each hit: the chunks next to it, or so many chunks on each side. */
export const Expand = z
  .union([z.enum(["neighbours"]), WireInteger.pipe(z.int().min(1).max(NEIGHBOURS_MAX))])
  .describe(
    "neighbours: the chunks before and after the hit. A number: so many chunks on each side. Hits whose texts touch are one result.",
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
};
