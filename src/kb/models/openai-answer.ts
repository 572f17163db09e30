import { APIError } from "openai";
import { z } from "zod";
import { type ModelAnswer } from "./chat-model.ts";
import { NO_USAGE, type ModelUsage } from "./price.ts";

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

/** A text, or parts of which those of text count. */
const Content = z.union([z.string(), z.array(z.object({ text: z.string().nullish() }))]).nullish();
const ToolCalls = z
  .array(z.object({ function: z.object({ name: z.string().nullish() }).nullish() }))
  .nullish();
const Message = z.object({ content: Content, refusal: z.string().nullish(), tool_calls: ToolCalls });

/** A whole answer. */
const CompletionBody = z.object({
  ...base,
  choices: z.array(
    z.object({
      message: Message,
      finish_reason: z.string().nullish(),
    }),
  ),
});

/** A piece of a streamed one. The last one may have no choice, and the usage. */
const ChunkBody = z.object({
  ...base,
  choices: z
    .array(
      z.object({
        delta: Message.nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
});

/** What gateways answer with status 200 where the model behind them failed. */
const ErrorBody = z.object({
  error: z.union([
    z.string(),
    z.object({ message: z.string().nullish(), code: z.union([z.string(), z.number()]).nullish() }),
  ]),
});

export type Completion = z.output<typeof CompletionBody>;
export type Chunk = z.output<typeof ChunkBody>;

/** Reads a whole answer. Throws an Error in words for a person, an `APIError` where the answer has an error's status. */
export function readCompletion(text: string): Completion {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("its endpoint answered with something other than JSON");
  }
  const completion = read(CompletionBody, json);
  if (completion.choices.length === 0) throw new Error("its endpoint answered without a choice");
  return completion;
}

/** Reads a piece of a streamed answer. Throws as `readCompletion`. */
export function readChunk(json: unknown): Chunk {
  return read(ChunkBody, json);
}

function read<Body extends z.ZodType>(schema: Body, json: unknown): z.output<Body> {
  const failed = ErrorBody.safeParse(json);
  if (failed.success) throw failureIn(failed.data);
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new Error(
    `its endpoint answered in another form than chat completions have${where === "" ? "" : ` (see ${where})`}`,
  );
}

function failureIn({ error }: z.output<typeof ErrorBody>): Error {
  const { message, code } = typeof error === "string" ? { message: error, code: undefined } : error;
  const words = message ?? (code === undefined || code === null ? "no reason given" : String(code));
  const status = Number(code);
  if (status >= 400 && status < 600) return new APIError(status, { message: words }, undefined, undefined);
  return new Error(`its endpoint answered with an error: ${words}`);
}

/** The text of a message, or of a piece of one. */
export function textOf({ content, refusal }: z.output<typeof Message>): string {
  const said = typeof content === "string" ? content : content?.map(({ text }) => text ?? "").join("");
  return said ?? refusal ?? "";
}

/** The tools that a message asks to call; empty where it calls none. */
export function toolsOf({ tool_calls: calls }: z.output<typeof Message>): string[] {
  return (calls ?? []).map((call) => call.function?.name ?? "").filter((name) => name !== "");
}

/** Why an answer without text has none, where it asks for tools instead. */
export function toolWords(tools: readonly string[], finishReason: string | null | undefined): string {
  if (tools.length === 0 && finishReason !== "tool_calls") return "";
  const names = [...new Set(tools)].join(", ");
  return `it asked to call ${names === "" ? "tools" : `the tools ${names}`} instead of answering, and this service offers none`;
}

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
