import { Readable } from "node:stream";
import type { Response } from "undici";
import type { ChatModel, ModelAnswer, ModelCall, ModelMessage, ModelRequest } from "./chat-model.ts";
import { type Endpoint, openEndpoint, readModelStream } from "./endpoint.ts";
import { modelFailure, ModelFailure, unusableAnswer } from "./model-failure.ts";
import {
  finishOf,
  readChunk,
  readCompletion,
  textOf,
  usageOf,
  type Chunk,
  type Completion,
} from "./openai-answer.ts";
import type { ModelUsage } from "./price.ts";
import { withRetries, type RetryLimits } from "./retry.ts";

/** An endpoint and its limits. */
export interface OpenAiOptions {
  /** URL up to the version, as clients of such services expect it: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Undefined: sends no key. Local servers need none. */
  readonly apiKey: (() => string) | undefined;
  /** Timeout of an answer over all attempts, and of the next chunk of a stream. */
  readonly timeoutMs: number;
  /** Attempts if the endpoint is busy or disconnects before it answers anything. Default 3. */
  readonly attempts?: number;
  /** Called with the tokens of each answer, also of one that cannot be used. */
  readonly onUsage?: (usage: ModelUsage) => void;
}

const ATTEMPTS = 3;
/** Largest non-streamed response: the longest answer with every character escaped, plus the envelope. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Bound on the remembered models without `response_format`: agents may name any model. */
const WITHOUT_FORMAT_MAX = 1000;
/** Longest answer in characters: about 250,000 tokens, more than any model writes. */
const ANSWER_CHARS_MAX = 1_000_000;

/** Opens a model behind any endpoint with OpenAI's chat completions API. Sends nothing before the first question. */
export function openOpenAiModel(options: OpenAiOptions): ChatModel {
  const { apiKey, timeoutMs, attempts = ATTEMPTS } = options;
  const url = `${options.baseUrl.replace(/\/+$/, "")}/chat/completions`;
  const endpoint = openEndpoint({ url, apiKey, answerBytesMax: ANSWER_BYTES_MAX });
  /** Models whose endpoint refuses `response_format`: only the prompt asks them for JSON. */
  const withoutFormat = new Set<string>();

  const answerOnce = async (
    request: ModelRequest,
    { signal, onText, limits = { attemptMs: timeoutMs, totalMs: timeoutMs } }: ModelCall,
  ): Promise<ModelAnswer> => {
    signal.throwIfAborted();
    const tries = { limits, attempts, signal };
    const failureOf = (error: unknown): ModelFailure =>
      modelFailure(error, { model: request.model, apiKey: apiKey?.(), timeoutMs: limits.attemptMs });
    try {
      const given =
        onText === undefined
          ? await complete(endpoint, request, tries)
          : await stream(endpoint, request, tries, onText, failureOf);
      options.onUsage?.(given.usage);
      // An empty answer is a failure, unless a content filter removed the text.
      if (given.text !== "" || given.finish === "content_filter") return given;
      if (given.finish === "error") throw new Error(given.problem);
      throw unusableAnswer(request.model, "it answered nothing", given.usage);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof ModelFailure ? error : failureOf(error);
    }
  };

  return {
    answer: async (request, call) => {
      const asJson = request.asJson && !withoutFormat.has(request.model);
      try {
        return await answerOnce({ ...request, asJson }, call);
      } catch (error) {
        if (!asJson || !(error instanceof ModelFailure) || !error.refuses("response_format")) throw error;
        if (withoutFormat.size >= WITHOUT_FORMAT_MAX) withoutFormat.clear();
        withoutFormat.add(request.model);
        return answerOnce({ ...request, asJson: false }, call);
      }
    },
    close: () => endpoint.close(),
  };
}

/** How often and how long a question is sent. */
interface Tries {
  readonly limits: RetryLimits;
  readonly attempts: number;
  readonly signal: AbortSignal;
}

/** Asks for a whole answer. */
async function complete(
  endpoint: Endpoint,
  request: ModelRequest,
  { limits, attempts, signal }: Tries,
): Promise<ModelAnswer> {
  return withRetries(limits, attempts, signal, async (until) => {
    const response = await endpoint.send(bodyOf(request), until);
    return wholeAnswer(readCompletion(await response.text()), request.model);
  });
}

/** Asks for a stream, and passes each piece of text to `onText`. A stream that fails after some text is an incomplete answer. */
async function stream(
  endpoint: Endpoint,
  request: ModelRequest,
  { limits, attempts, signal }: Tries,
  onText: (piece: string) => void,
  failureOf: (error: unknown) => ModelFailure,
): Promise<ModelAnswer> {
  const idle = new AbortController();
  const body = { ...bodyOf(request), stream: true as const, stream_options: { include_usage: true } };
  const accumulator = accumulate(request.model);
  let idleTimer: NodeJS.Timeout | undefined;
  try {
    const response = await withRetries(limits, attempts, signal, async (until) => {
      const given = await endpoint.send(body, AbortSignal.any([until, idle.signal]));
      if (isStream(given)) return given;
      // Some servers do not stream answers, others do not stream errors.
      return wholeAnswer(readCompletion(await given.text()), request.model);
    });
    if ("finish" in response) {
      if (response.text !== "") onText(response.text);
      return response;
    }
    idleTimer = setTimeout(() => idle.abort(), limits.attemptMs);
    const chunks = readModelStream(response.body ?? Readable.from([]));
    for (;;) {
      const chunk = await chunks.next();
      if (chunk.done) {
        if (chunk.value) accumulator.end();
        break;
      }
      idleTimer.refresh();
      const piece = accumulator.add(readChunk(chunk.value));
      if (piece !== "") onText(piece);
      if (accumulator.isFull()) break;
    }
    return accumulator.answer("the answer broke off");
  } catch (error) {
    signal.throwIfAborted();
    const cause = idle.signal.aborted ? new DOMException("the stream stalled", "TimeoutError") : error;
    if (!accumulator.hasText()) throw cause;
    return accumulator.answer(failureOf(cause).message);
  } finally {
    clearTimeout(idleTimer);
  }
}

/** Whether a response is a stream: any type but JSON and HTML, because some servers label streams wrongly. */
function isStream({ headers }: Response): boolean {
  return !/json|html/.test(headers.get("content-type") ?? "");
}

function wholeAnswer({ id, model, choices, usage }: Completion, requestedModel: string): ModelAnswer {
  const [choice] = choices;
  const text = choice === undefined ? "" : textOf(choice.message);
  const isLong = text.length > ANSWER_CHARS_MAX;
  return {
    id: id ?? "",
    text: text.slice(0, ANSWER_CHARS_MAX).toWellFormed(),
    model: model ?? requestedModel,
    // A non-streamed answer without a finish reason is complete.
    finish: isLong ? "truncated" : finishOf(choice?.finish_reason ?? "stop"),
    problem: "",
    usage: usageOf(usage),
  };
}

/** Accumulates the chunks of a stream. */
function accumulate(requestedModel: string) {
  let text = "";
  let finishReason: string | undefined;
  let id = "";
  let model = requestedModel;
  let usage = usageOf(undefined);
  const isFull = (): boolean => text.length > ANSWER_CHARS_MAX;
  return {
    /** Adds a chunk and returns its text. */
    add: (chunk: Chunk): string => {
      const choice = chunk.choices?.[0];
      const delta = choice?.delta ?? undefined;
      const piece = delta === undefined ? "" : textOf(delta);
      id ||= chunk.id ?? "";
      model = chunk.model ?? model;
      finishReason = choice?.finish_reason ?? finishReason;
      if (chunk.usage !== null && chunk.usage !== undefined) usage = usageOf(chunk.usage);
      text += piece;
      return piece;
    },
    /** Records the end mark of the stream: an answer without a finish reason is then complete. */
    end: (): void => {
      finishReason ??= "stop";
    },
    hasText: () => text !== "",
    isFull,
    /** Returns the answer so far; `problem` describes an incomplete one. */
    answer: (problem: string): ModelAnswer => {
      const finish = isFull() ? "truncated" : finishOf(finishReason);
      return {
        id,
        text: text.toWellFormed(),
        model,
        finish,
        problem: finish === "error" ? problem : "",
        usage,
      };
    },
  };
}

function bodyOf({ model, messages, asJson }: ModelRequest) {
  return {
    model,
    messages: messages.map(messageOf),
    ...(asJson ? { response_format: { type: "json_object" as const } } : {}),
  };
}

function messageOf({ role, text, images = [] }: ModelMessage): object {
  // Sends text alone as a string: some servers accept no other form.
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
