import { z } from "zod";
import { type ModelAnswer } from "./chat-model.ts";
import { EndpointRefusal } from "./endpoint.ts";
import { NO_USAGE, type ModelUsage } from "./price.ts";

// The used part of the responses of endpoints, which differ in the fields that they omit and add.

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

/** A string, or a list of parts, of which the text parts count. */
const Content = z.union([z.string(), z.array(z.object({ text: z.string().nullish() }))]).nullish();
const Message = z.object({ content: Content, refusal: z.string().nullish() });

/** A non-streamed response. */
const CompletionBody = z.object({
  ...base,
  choices: z.array(
    z.object({
      message: Message,
      finish_reason: z.string().nullish(),
    }),
  ),
});

/** A chunk of a stream. The last one may have the usage and no choice. */
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

/** Response of a gateway with status 200 if the model behind it failed. */
const ErrorBody = z.object({
  error: z.union([
    z.string(),
    z.object({ message: z.string().nullish(), code: z.union([z.string(), z.number()]).nullish() }),
  ]),
});

export type Completion = z.output<typeof CompletionBody>;
export type Chunk = z.output<typeof ChunkBody>;

/** Parses a non-streamed response. Throws an Error with a message for a person, and an EndpointRefusal for an error with a status. */
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

/** Parses a chunk of a stream. Throws like `readCompletion`. */
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
    `its endpoint's answer does not have the form of a chat completion${where === "" ? "" : ` (see ${where})`}`,
  );
}

function failureIn({ error }: z.output<typeof ErrorBody>): Error {
  const { message, code } = typeof error === "string" ? { message: error, code: undefined } : error;
  const reason = [message ?? "", String(code ?? "")].find((words) => words !== "") ?? "no reason given";
  const status = Number(code);
  if (status >= 400 && status < 600) return new EndpointRefusal(status, reason);
  return new Error(`its endpoint answered with an error: ${reason}`);
}

/** Returns the text of a message or of a streamed delta. */
export function textOf({ content, refusal }: z.output<typeof Message>): string {
  const text = typeof content === "string" ? content : content?.map((part) => part.text ?? "").join("");
  return text ?? refusal ?? "";
}

/** Returns the endpoint's token counts, with 0 for missing ones. */
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

/** Maps a finish reason; an answer without one has broken off. */
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
