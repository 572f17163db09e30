import OpenAI from "openai";
import { Agent, fetch as undiciFetch } from "undici";
import type { z } from "zod";
import type { ChatModel, ModelAnswer, ModelCall, ModelMessage, ModelRequest } from "./chat-model.ts";
import { modelFailure } from "./model-failure.ts";
import { ChunkBody, CompletionBody, finishOf, usageOf } from "./openai-answer.ts";

/** An endpoint and how it is asked. */
export interface OpenAiOptions {
  /** With the version, without a slash at the end. */
  readonly baseUrl: string;
  /** Undefined: no key is sent. */
  readonly apiKey: string | undefined;
  /** Longest wait for an answer, all tries together, and for the next piece of one that streams. */
  readonly timeoutMs: number;
}

/** Tries after the first, where the endpoint is busy or breaks off before it answered anything. One that hangs gets none. */
const RETRIES = 2;
/** Longest answer in characters: some 250,000 tokens, more than any model writes. */
const ANSWER_CHARS_MAX = 1_000_000;

/** A model behind any endpoint that speaks OpenAI's chat completions. */
export function openOpenAiModel({ baseUrl, apiKey, timeoutMs }: OpenAiOptions): ChatModel {
  // Connections of their own; undici's limits would cut off answers that we still wait for.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const client = new OpenAI({
    baseURL: baseUrl,
    // Whatever stands in the environment belongs to other programs.
    apiKey: apiKey ?? "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    ...(apiKey === undefined ? { defaultHeaders: { authorization: null } } : {}),
    maxRetries: RETRIES,
    timeout: timeoutMs,
    logLevel: "off",
    // The types of undici and of the platform's fetch differ in name alone.
    fetch: undiciFetch as unknown as typeof fetch,
    fetchOptions: { dispatcher } as object,
  });

  const whole = async (request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> => {
    const body = { ...bodyOf(request), stream: false as const };
    const patience = AbortSignal.timeout(timeoutMs);
    const options = { signal: AbortSignal.any([signal, patience]) };
    const json: unknown = await client.chat.completions.create(body, options).catch((error: unknown) => {
      throw patience.aborted ? patience.reason : error;
    });
    const completion = CompletionBody.parse(json);
    const [choice] = completion.choices;
    const text = choice?.message.content ?? choice?.message.refusal ?? "";
    const isLong = text.length > ANSWER_CHARS_MAX;
    return {
      id: completion.id ?? "",
      text: text.slice(0, ANSWER_CHARS_MAX).toWellFormed(),
      model: completion.model ?? request.model,
      // A whole answer that does not say why it ended has ended.
      finish: isLong ? "truncated" : finishOf(choice?.finish_reason ?? "stop"),
      problem: "",
      usage: usageOf(completion.usage),
    };
  };

  const streamed = async (
    request: ModelRequest,
    signal: AbortSignal,
    onText: (piece: string) => void,
  ): Promise<ModelAnswer> => {
    const silence = new AbortController();
    const body = { ...bodyOf(request), stream: true as const, stream_options: { include_usage: true } };
    const gathered = gather(request.model);
    const patience = setTimeout(() => silence.abort(), timeoutMs);
    try {
      const stream = await client.chat.completions.create(body, {
        signal: AbortSignal.any([signal, silence.signal]),
      });
      patience.refresh();
      for await (const chunk of stream) {
        patience.refresh();
        const piece = gathered.take(ChunkBody.parse(chunk));
        if (piece !== "") onText(piece);
        if (gathered.isFull()) break;
      }
      // An aborted stream ends without a word.
      signal.throwIfAborted();
      if (silence.signal.aborted) throw new DOMException("no further piece came", "TimeoutError");
      return gathered.answer("the answer broke off");
    } catch (error) {
      signal.throwIfAborted();
      const cause = silence.signal.aborted ? new DOMException("no piece came", "TimeoutError") : error;
      if (!gathered.hasText()) throw cause;
      return gathered.answer(modelFailure(cause, request.model, timeoutMs).message);
    } finally {
      clearTimeout(patience);
    }
  };

  return {
    answer: async (request, { signal, onText }: ModelCall) => {
      signal.throwIfAborted();
      try {
        if (onText === undefined) return await whole(request, signal);
        const answer = await streamed(request, signal, onText);
        if (answer.text !== "" || answer.finish !== "error") return answer;
        throw new Error(answer.problem);
      } catch (error) {
        signal.throwIfAborted();
        throw modelFailure(error, request.model, timeoutMs);
      }
    },
    close: () => dispatcher.destroy(),
  };
}

/** What has come of a streamed answer. */
interface Gathered {
  /** Takes the next chunk in; answers its text. */
  take(chunk: z.output<typeof ChunkBody>): string;
  hasText(): boolean;
  isFull(): boolean;
  /** `problem` is told where it did not come to its end. */
  answer(problem: string): ModelAnswer;
}

function gather(asked: string): Gathered {
  let text = "";
  let finishReason: string | undefined;
  let id = "";
  let model = asked;
  let usage = usageOf(undefined);
  const isFull = (): boolean => text.length > ANSWER_CHARS_MAX;
  return {
    take: (chunk) => {
      const choice = chunk.choices?.[0];
      const piece = choice?.delta?.content ?? choice?.delta?.refusal ?? "";
      id ||= chunk.id ?? "";
      model = chunk.model ?? model;
      finishReason = choice?.finish_reason ?? finishReason;
      if (chunk.usage !== null && chunk.usage !== undefined) usage = usageOf(chunk.usage);
      text += piece;
      return piece;
    },
    hasText: () => text !== "",
    isFull,
    answer: (problem) => {
      const finish = isFull() ? "truncated" : finishOf(finishReason);
      const said = finish === "error" ? problem : "";
      return { id, text: text.toWellFormed(), model, finish, problem: said, usage };
    },
  };
}

function bodyOf({ model, messages, temperature, asJson }: ModelRequest) {
  return {
    model,
    messages: messages.map(messageOf),
    ...(temperature === undefined ? {} : { temperature }),
    ...(asJson ? { response_format: { type: "json_object" as const } } : {}),
  };
}

function messageOf({ role, text, images = [] }: ModelMessage): OpenAI.ChatCompletionMessageParam {
  // Text alone goes as a string: some servers know no other form of it.
  if (role !== "user" || images.length === 0) return { role, content: text };
  return {
    role,
    content: [
      { type: "text", text },
      ...images.map(({ mediaType, bytes }) => ({
        type: "image_url" as const,
        image_url: { url: `data:${mediaType};base64,${Buffer.from(bytes).toString("base64")}` },
      })),
    ],
  };
}
