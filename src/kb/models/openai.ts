import OpenAI from "openai";
import { Stream } from "openai/streaming";
import { Agent, fetch as undiciFetch } from "undici";
import type { ChatModel, ModelAnswer, ModelCall, ModelMessage, ModelRequest } from "./chat-model.ts";
import { modelFailure, ModelFailure, unusableAnswer } from "./model-failure.ts";
import {
  finishOf,
  readChunk,
  readCompletion,
  textOf,
  toolsOf,
  toolWords,
  usageOf,
  type Chunk,
  type Completion,
} from "./openai-answer.ts";
import { askPatiently, type Patience } from "./patience.ts";
import { watchStream } from "./stream-end.ts";

/** An endpoint and how it is asked. */
export interface OpenAiOptions {
  /** Up to the version, as clients of such services take it: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Undefined: no key is sent, as servers on the own machine need none. */
  readonly apiKey: string | undefined;
  /** Longest wait for an answer, all tries together, and for the next piece of one that streams. */
  readonly timeoutMs: number;
  /** Tries of a question where the endpoint is busy or breaks off before it answered anything. Default 3. */
  readonly attempts?: number;
}

const ATTEMPTS = 3;
/** Models remembered that are asked without a form; agents name what they like. */
const FORMLESS_MAX = 1000;
/** Longest answer in characters: some 250,000 tokens, more than any model writes. */
const ANSWER_CHARS_MAX = 1_000_000;
/** Most bytes read of an answer, whole or an error: that many characters, each escaped, and what stands around them. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Names of tools that are remembered of an answer that calls them. */
const TOOLS_MAX = 10;
/** Of one that streams: each token comes with some hundred bytes around it. */
const STREAM_BYTES_MAX = 128 * 1024 * 1024;

/** A model behind any endpoint that speaks OpenAI's chat completions. Nothing is sent before the first question. */
export function openOpenAiModel(options: OpenAiOptions): ChatModel {
  const { apiKey, timeoutMs, attempts = ATTEMPTS } = options;
  // Connections of their own; undici's limits would cut off answers that we still wait for.
  const unhurried = { headersTimeout: 0, bodyTimeout: 0 };
  const wholes = new Agent({ ...unhurried, maxResponseSize: ANSWER_BYTES_MAX });
  const streams = new Agent({ ...unhurried, maxResponseSize: STREAM_BYTES_MAX });
  // Redirects are not followed: documents, images and the key are for this address alone.
  const over = (dispatcher: Agent): object => ({ dispatcher, redirect: "manual" });
  const client = new OpenAI({
    baseURL: options.baseUrl.replace(/\/+$/, ""),
    // Whatever stands in the environment belongs to other programs.
    apiKey: apiKey ?? "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    ...(apiKey === undefined ? { defaultHeaders: { authorization: null } } : {}),
    // Tries and times are counted by askPatiently, for all of a question together.
    maxRetries: 0,
    logLevel: "off",
    // The types of undici and of the platform's fetch differ in name alone.
    fetch: undiciFetch as unknown as typeof fetch,
  });

  const whole = async (
    request: ModelRequest,
    patience: Patience,
    signal: AbortSignal,
  ): Promise<ModelAnswer> => {
    const settings = { timeout: patience.tryMs, fetchOptions: over(wholes) };
    return askPatiently(patience, attempts, signal, async (until) => {
      const asked = client.chat.completions.create(bodyOf(request), { ...settings, signal: until });
      // Some servers do not say that their answer is JSON; the client would hand it on as a text.
      return wholeAnswer(readCompletion(await (await asked.asResponse()).text()), request.model);
    });
  };

  const streamed = async (
    request: ModelRequest,
    patience: Patience,
    signal: AbortSignal,
    onText: (piece: string) => void,
  ): Promise<ModelAnswer> => {
    const silence = new AbortController();
    // The client aborts it when the stream is left, read to its end or not.
    const reading = new AbortController();
    const body = { ...bodyOf(request), stream: true as const, stream_options: { include_usage: true } };
    const settings = { timeout: patience.tryMs, fetchOptions: over(streams) };
    const gathered = gather(request.model);
    let clock: NodeJS.Timeout | undefined;
    try {
      const response = await askPatiently(patience, attempts, signal, async (until) => {
        const asked = client.chat.completions.create(body, {
          ...settings,
          signal: AbortSignal.any([until, silence.signal, reading.signal]),
        });
        const given = await asked.asResponse();
        if (isStream(given)) return given;
        // Some servers stream no answer, and others no error.
        return wholeAnswer(readCompletion(await given.text()), request.model);
      });
      if ("finish" in response) {
        if (response.text !== "") onText(response.text);
        return response;
      }
      clock = setTimeout(() => silence.abort(), patience.tryMs);
      const watched = watchStream(response);
      for await (const chunk of Stream.fromSSEResponse<unknown>(watched.response, reading)) {
        clock.refresh();
        const piece = gathered.take(readChunk(chunk));
        if (piece !== "") onText(piece);
        if (gathered.isFull()) break;
      }
      if (watched.isOver()) gathered.end();
      // An aborted stream ends without a word.
      signal.throwIfAborted();
      if (silence.signal.aborted) throw new DOMException("no further piece came", "TimeoutError");
      return gathered.answer("the answer broke off");
    } catch (error) {
      signal.throwIfAborted();
      const cause = silence.signal.aborted ? new DOMException("no piece came", "TimeoutError") : error;
      if (!gathered.hasText()) throw cause;
      return gathered.answer(failureOf(cause, request, patience).message);
    } finally {
      clearTimeout(clock);
    }
  };

  const failureOf = (error: unknown, { model }: ModelRequest, { tryMs }: Patience): ModelFailure =>
    modelFailure(error, { model, apiKey, timeoutMs: tryMs });

  /** Models whose endpoint knows no form of answers: they are asked for JSON in words alone. */
  const formless = new Set<string>();

  const answer = async (request: ModelRequest, call: ModelCall): Promise<ModelAnswer> => {
    const asJson = request.asJson && !formless.has(request.model);
    try {
      return await answerOnce({ ...request, asJson }, call);
    } catch (error) {
      if (!asJson || !(error instanceof ModelFailure) || !error.refuses("response_format")) throw error;
      if (formless.size >= FORMLESS_MAX) formless.clear();
      formless.add(request.model);
      return answerOnce({ ...request, asJson: false }, call);
    }
  };

  const answerOnce = async (
    request: ModelRequest,
    { signal, onText, patience: own }: ModelCall,
  ): Promise<ModelAnswer> => {
    signal.throwIfAborted();
    const patience = own ?? { tryMs: timeoutMs, allMs: timeoutMs };
    try {
      const given =
        onText === undefined
          ? await whole(request, patience, signal)
          : await streamed(request, patience, signal, onText);
      // A filter that took all of an answer is what came of the question; otherwise no text is no answer.
      if (given.text !== "" || given.finish === "content_filter") return given;
      if (given.finish === "error") throw new Error(given.problem);
      const did = given.problem === "" ? "it answered nothing" : given.problem;
      throw unusableAnswer(request.model, did, given.usage);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof ModelFailure ? error : failureOf(error, request, patience);
    }
  };

  return {
    answer,
    close: async () => {
      await Promise.all([wholes.destroy(), streams.destroy()]);
    },
  };
}

/** Some servers stream under another type; what is called JSON or a page is no stream. */
function isStream({ headers }: Response): boolean {
  return !/json|html/.test(headers.get("content-type") ?? "");
}

function wholeAnswer({ id, model, choices, usage }: Completion, asked: string): ModelAnswer {
  const [choice] = choices;
  const text = choice === undefined ? "" : textOf(choice.message);
  const isLong = text.length > ANSWER_CHARS_MAX;
  return {
    id: id ?? "",
    text: text.slice(0, ANSWER_CHARS_MAX).toWellFormed(),
    model: model ?? asked,
    // A whole answer that does not say why it ended has ended.
    finish: isLong ? "truncated" : finishOf(choice?.finish_reason ?? "stop"),
    problem: choice === undefined ? "" : toolWords(toolsOf(choice.message), choice.finish_reason),
    usage: usageOf(usage),
  };
}

/** What has come of a streamed answer. */
interface Gathered {
  /** Takes the next chunk in; answers its text. */
  take(chunk: Chunk): string;
  /** The endpoint marked the end of the stream: an answer that gives no reason for its end is complete. */
  end(): void;
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
  const tools: string[] = [];
  const isFull = (): boolean => text.length > ANSWER_CHARS_MAX;
  return {
    take: (chunk) => {
      const choice = chunk.choices?.[0];
      const delta = choice?.delta ?? undefined;
      const piece = delta === undefined ? "" : textOf(delta);
      if (delta !== undefined && tools.length < TOOLS_MAX) tools.push(...toolsOf(delta));
      id ||= chunk.id ?? "";
      model = chunk.model ?? model;
      finishReason = choice?.finish_reason ?? finishReason;
      if (chunk.usage !== null && chunk.usage !== undefined) usage = usageOf(chunk.usage);
      text += piece;
      return piece;
    },
    end: () => {
      finishReason ??= "stop";
    },
    hasText: () => text !== "",
    isFull,
    answer: (problem) => {
      const finish = isFull() ? "truncated" : finishOf(finishReason);
      const said = finish === "error" ? problem : toolWords(tools, finishReason);
      return { id, text: text.toWellFormed(), model, finish, problem: said, usage };
    },
  };
}

function bodyOf({ model, messages, temperature, seed, asJson }: ModelRequest) {
  return {
    model,
    messages: messages.map(messageOf),
    ...(temperature === undefined ? {} : { temperature }),
    ...(seed === undefined ? {} : { seed }),
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
