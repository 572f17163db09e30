import { z } from "zod";
import { NO_USAGE, type ModelAnswer, type ModelUsage } from "./chat-model.ts";

// What endpoints answer, as far as it is used. They differ in what they leave out and in what they add.

const tokens = z.number().nonnegative().nullish();
const UsageBody = z.object({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  prompt_tokens_details: z.object({ cached_tokens: tokens }).nullish(),
  completion_tokens_details: z.object({ reasoning_tokens: tokens }).nullish(),
  // Gateways to other vendors pass these on.
  cache_read_input_tokens: tokens,
  cache_creation_input_tokens: tokens,
});

const base = { id: z.string().nullish(), model: z.string().nullish(), usage: UsageBody.nullish() };

/** A whole answer. */
export const CompletionBody = z.object({
  ...base,
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
});

/** A piece of a streamed one. The last one may have no choice, and the usage. */
export const ChunkBody = z.object({
  ...base,
  choices: z
    .array(
      z.object({
        delta: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
});

/** The endpoint's counts; 0 where it has none. */
export function usageOf(body: z.infer<typeof UsageBody> | null | undefined): ModelUsage {
  if (body === null || body === undefined) return NO_USAGE;
  return {
    inputTokens: body.prompt_tokens ?? 0,
    outputTokens: body.completion_tokens ?? 0,
    cacheReadTokens: body.prompt_tokens_details?.cached_tokens ?? body.cache_read_input_tokens ?? 0,
    cacheCreationTokens: body.cache_creation_input_tokens ?? 0,
    reasoningTokens: body.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}

/** Why an answer ended; one that does not say has broken off. */
export function finishOf(reason: string | null | undefined): ModelAnswer["finish"] {
  switch (reason ?? "") {
    case "":
      return "error";
    case "length":
      return "truncated";
    case "content_filter":
      return "content_filter";
    default:
      return "completed";
  }
}
