import { KbsyncError } from "../../lib/failure.ts";
import type { Citation, FinishReason } from "../../wire/chat.ts";
import type { Agent } from "../agents/agents.ts";
import type { Ocr } from "../ingest/extract/ocr.ts";
import { type ChatModel, type ModelAnswer, type ModelImage } from "../models/chat-model.ts";
import { NO_USAGE, type ModelUsage } from "../models/price.ts";
import { ModelFailure, unusableAnswer } from "../models/model-failure.ts";
import type { ModelHealth } from "../models/model-health.ts";
import { Refusal } from "../resources/refusal.ts";
import type { Turn } from "../store/chat.ts";
import { answerBuiltin, BUILTIN_MODEL } from "./builtin.ts";
import type { ChatImage } from "./images.ts";
import { citationsOf, type Passage } from "./passage.ts";
import { makePrompt } from "./prompt.ts";

/** A question with everything that its answer is made from. */
export interface Question {
  readonly agent: Agent;
  readonly systemPrompt: string;
  readonly text: string;
  readonly images: readonly ChatImage[];
  readonly passages: readonly Passage[];
  readonly turns: readonly Turn[];
  readonly asJson: boolean;
}

/** The answer to a question. */
export interface AnswerResult {
  readonly id: string;
  readonly text: string;
  readonly model: string;
  /** The name of the model in the request, by which its price is known. */
  readonly requestedModel: string;
  readonly finish: FinishReason;
  readonly usage: ModelUsage;
  /** An earlier answer that cost tokens but was not usable. */
  readonly refused?: PaidAttempt;
  readonly citations: readonly Citation[];
  readonly turnsLeftOut: number;
  readonly passagesLeftOut: number;
  readonly fallback: boolean;
  readonly firstAttemptError: string;
}

/** The tokens that an unusable answer cost. */
export interface PaidAttempt {
  readonly requestedModel: string;
  readonly usage: ModelUsage;
}

/** The endpoint of the models, the default model, and the monitor of their health. */
export interface Endpoint {
  readonly chat: ChatModel;
  readonly model: string;
  readonly watch: Pick<ModelHealth, "reportSuccess" | "reportFailure">;
}

/** The models and the text recognition that answer questions. */
export interface Answerers {
  /** Undefined: no endpoint is configured, and the builtin agent answers everything. */
  readonly endpoint: Endpoint | undefined;
  readonly ocr: Pick<Ocr, "pagesMax" | "readImage">;
  readonly contextTokensOf: (model: string) => number;
}

/** Options of one answer. */
export interface AnswerOptions {
  readonly signal: AbortSignal;
  readonly onText?: ((piece: string) => void) | undefined;
}

/** Returns the models of an agent in the order in which they are tried. */
export function modelsOf(agent: Agent, { endpoint }: Answerers): readonly string[] {
  if (endpoint === undefined) return [BUILTIN_MODEL];
  const first = agent.model ?? endpoint.model;
  const { fallbackModel } = agent;
  return fallbackModel === undefined || fallbackModel === first ? [first] : [first, fallbackModel];
}

/**
 * Asks the agent's model, then its fallback model if the first fails. Throws `model_failed`, `model_busy` and `model_timeout` if
 * neither answers, and `text_too_large` if the question does not fit into the window.
 */
export async function ask(
  answerers: Answerers,
  question: Question,
  options: AnswerOptions,
): Promise<AnswerResult> {
  const [first = BUILTIN_MODEL, second] = modelsOf(question.agent, answerers);
  try {
    return { ...(await attempt(answerers, first, question, options)), fallback: false };
  } catch (error) {
    options.signal.throwIfAborted();
    if (second === undefined || !isModelFailure(error)) throw error;
    const firstAttemptError = error.message;
    const usage = error instanceof ModelFailure ? error.usage : undefined;
    const refused = usage === undefined ? {} : { refused: { requestedModel: first, usage } };
    try {
      const answered = await attempt(answerers, second, question, options);
      return { ...answered, ...refused, fallback: true, firstAttemptError };
    } catch (secondError) {
      if (!isModelFailure(secondError)) throw secondError;
      if (secondError instanceof ModelFailure) throw secondError.after(firstAttemptError);
      const message = `${firstAttemptError}; then ${secondError.message}`;
      throw new KbsyncError(message, { code: secondError.code, retryable: true, cause: secondError });
    }
  }
}

const MODEL_CODES: ReadonlySet<string> = new Set(["model_failed", "model_busy", "model_timeout"]);

function isModelFailure(error: unknown): error is KbsyncError {
  return error instanceof KbsyncError && MODEL_CODES.has(error.code);
}

type AttemptResult = Omit<AnswerResult, "fallback">;

async function attempt(
  answerers: Answerers,
  model: string,
  question: Question,
  options: AnswerOptions,
): Promise<AttemptResult> {
  if (model === BUILTIN_MODEL || answerers.endpoint === undefined) {
    return askBuiltin(answerers, question, options);
  }
  const { chat, watch } = answerers.endpoint;
  try {
    const answered = await askModel(chat, answerers.contextTokensOf(model), model, question, options);
    // A stream that broke off says nothing about the model's health; the next question does.
    if (answered.finish !== "error") watch.reportSuccess(model);
    return answered;
  } catch (error) {
    if (error instanceof ModelFailure) watch.reportFailure(model, error);
    throw error;
  }
}

async function askBuiltin(
  { ocr }: Answerers,
  question: Question,
  options: AnswerOptions,
): Promise<AttemptResult> {
  const { agent, text, images, passages, turns, asJson } = question;
  const hasKnowledge = agent.knowledge.length > 0;
  const answer = await answerBuiltin(ocr, {
    question: text,
    images,
    passages,
    hasKnowledge,
    asJson,
    ...options,
  });
  return {
    id: "",
    model: BUILTIN_MODEL,
    requestedModel: BUILTIN_MODEL,
    finish: "completed",
    usage: NO_USAGE,
    // The builtin agent uses no earlier messages, only images.
    turnsLeftOut: turns.length,
    passagesLeftOut: 0,
    firstAttemptError: "",
    ...answer,
  };
}

async function askModel(
  chat: ChatModel,
  contextTokens: number,
  model: string,
  question: Question,
  { signal, onText }: AnswerOptions,
): Promise<AttemptResult> {
  const { systemPrompt, passages, turns, asJson } = question;
  const shownAt = (at: number | undefined): ModelImage[] =>
    question.images.flatMap(({ facts, turnAt }) => (turnAt === at ? (facts.rendered ?? []) : []));
  const parts = {
    systemPrompt,
    passages,
    turns: turns.map((turn, at) => Object.assign({ images: shownAt(at) }, turn)),
    question: question.text,
    images: shownAt(undefined),
    asJson,
    contextTokens,
  };
  const prompt = makePrompt(parts);
  if (prompt === undefined) throw tooLong(contextTokens);
  const request = { model, messages: prompt.messages, asJson };
  // JSON is sent in one piece after it was parsed: pieces could not be taken back before the fallback model is tried.
  const onPiece = onText && (asJson ? () => undefined : onText);
  const answer = await chat.answer(request, { signal, ...(onPiece && { onText: onPiece }) });
  const text = asJson ? jsonOf(answer, model) : answer.text;
  if (asJson) onText?.(text);
  return {
    id: answer.id,
    text,
    model: answer.model,
    requestedModel: model,
    finish: answer.finish,
    usage: answer.usage,
    citations: citationsOf(text, prompt.passages),
    turnsLeftOut: prompt.turnsLeftOut,
    passagesLeftOut: prompt.passagesLeftOut,
    firstAttemptError: answer.problem,
  };
}

/** Returns the JSON object of an answer. Throws for an incomplete one, whatever the cause. */
function jsonOf({ text, finish, problem, usage }: ModelAnswer, model: string): string {
  const json = finish === "error" ? undefined : jsonObjectOf(text);
  if (json !== undefined) return json;
  const problems = {
    completed: "it did not answer with one JSON object",
    truncated: "its JSON exceeded its limit",
    content_filter: "a filter removed the JSON object of its answer",
    error: `its JSON broke off (${problem})`,
  };
  throw unusableAnswer(model, problems[finish], usage);
}

function tooLong(contextTokens: number): Refusal {
  return new Refusal(
    "text_too_large",
    `user: the question and the agent's prompt do not fit into the model's window of ${contextTokens} tokens.`,
    {
      field: "user",
      hint: "Send a shorter question, or set the model's true window with kb.languageModel.models.",
    },
  );
}

const FENCE = "```";

/** Returns the JSON object of an answer, without the code fences that some models add. Undefined: it is not one object. Pure. */
export function jsonObjectOf(text: string): string | undefined {
  const bare = unfenced(text.trim());
  try {
    const value: unknown = JSON.parse(bare);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? bare : undefined;
  } catch {
    return undefined; // no JSON
  }
}

/** Uses positions, because a pattern would backtrack over a long answer. */
function unfenced(text: string): string {
  const head = text.indexOf("\n");
  const isFenced = text.startsWith(FENCE) && text.endsWith(FENCE) && head !== -1;
  if (!isFenced || !["", "json"].includes(text.slice(FENCE.length, head).trim())) return text;
  return text.slice(head, -FENCE.length).trim();
}
