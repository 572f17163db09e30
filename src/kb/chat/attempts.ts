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

/** A question with all that an answer is made from. */
export interface Question {
  readonly agent: Agent;
  readonly systemPrompt: string;
  readonly text: string;
  readonly images: readonly ChatImage[];
  readonly passages: readonly Passage[];
  readonly turns: readonly Turn[];
  readonly asJson: boolean;
}

/** What came of asking. */
export interface Attempted {
  readonly id: string;
  readonly text: string;
  readonly model: string;
  /** The model that was asked for, by which its price is known. */
  readonly asked: string;
  readonly finish: FinishReason;
  readonly usage: ModelUsage;
  /** An answer that was paid for and refused, before this one. */
  readonly refused?: Spent;
  readonly citations: readonly Citation[];
  readonly toolsData: Readonly<Record<string, unknown>>;
  readonly turnsLeftOut: number;
  readonly passagesLeftOut: number;
  readonly fallback: boolean;
  readonly firstAttemptError: string;
}

/** What an answer took. */
export interface Spent {
  /** The model that was asked for. */
  readonly asked: string;
  readonly usage: ModelUsage;
}

/** Where models are asked, which one where an agent names none, and who hears how they fare. */
export interface Endpoint {
  readonly chat: ChatModel;
  readonly model: string;
  readonly watch: Pick<ModelHealth, "reportSuccess" | "reportFailure">;
}

/** Who can be asked. */
export interface Answerers {
  /** Undefined: no endpoint is configured, and the builtin agent answers everything. */
  readonly endpoint: Endpoint | undefined;
  readonly ocr: Pick<Ocr, "pagesMax" | "readImage">;
  readonly contextTokensOf: (model: string) => number;
}

/** How an answer is waited for. */
export interface Waiting {
  readonly signal: AbortSignal;
  readonly onText?: ((piece: string) => void) | undefined;
}

/** The models of an agent in the order in which they are asked. */
export function modelsOf(agent: Agent, { endpoint }: Answerers): readonly string[] {
  if (endpoint === undefined) return [BUILTIN_MODEL];
  const first = agent.model ?? endpoint.model;
  const { fallbackModel } = agent;
  return fallbackModel === undefined || fallbackModel === first ? [first] : [first, fallbackModel];
}

/**
 * Asks the agent's model, and its second one where the first fails. Throws `model_failed`, `model_busy` and `model_timeout` where none
 * answers; `text_too_large` where the question does not fit into the window.
 */
export async function ask(answerers: Answerers, question: Question, waiting: Waiting): Promise<Attempted> {
  const [first = BUILTIN_MODEL, second] = modelsOf(question.agent, answerers);
  try {
    return { ...(await attempt(answerers, first, question, waiting)), fallback: false };
  } catch (error) {
    waiting.signal.throwIfAborted();
    if (second === undefined || !isModelFailure(error)) throw error;
    const firstAttemptError = error.message;
    const usage = error instanceof ModelFailure ? error.usage : undefined;
    const refused = usage === undefined ? {} : { refused: { asked: first, usage } };
    try {
      const answered = await attempt(answerers, second, question, waiting);
      return { ...answered, ...refused, fallback: true, firstAttemptError };
    } catch (again) {
      if (!isModelFailure(again)) throw again;
      if (again instanceof ModelFailure) throw again.after(firstAttemptError);
      const message = `${firstAttemptError}; then ${again.message}`;
      throw new KbsyncError(message, { code: again.code, retryable: true, cause: again });
    }
  }
}

const MODEL_CODES: ReadonlySet<string> = new Set(["model_failed", "model_busy", "model_timeout"]);

function isModelFailure(error: unknown): error is KbsyncError {
  return error instanceof KbsyncError && MODEL_CODES.has(error.code);
}

type Answered = Omit<Attempted, "fallback">;

async function attempt(
  answerers: Answerers,
  model: string,
  question: Question,
  waiting: Waiting,
): Promise<Answered> {
  if (model === BUILTIN_MODEL || answerers.endpoint === undefined) {
    return askBuiltin(answerers, question, waiting);
  }
  const { chat, watch } = answerers.endpoint;
  try {
    const answered = await askModel(chat, answerers.contextTokensOf(model), model, question, waiting);
    // A stream that broke off says no more than that: the next question tells.
    if (answered.finish !== "error") watch.reportSuccess(model);
    return answered;
  } catch (error) {
    if (error instanceof ModelFailure) watch.reportFailure(model, error);
    throw error;
  }
}

async function askBuiltin({ ocr }: Answerers, question: Question, waiting: Waiting): Promise<Answered> {
  const { agent, text, images, passages, turns, asJson } = question;
  const hasKnowledge = agent.knowledge.length > 0;
  const answer = await answerBuiltin(ocr, {
    question: text,
    images,
    passages,
    hasKnowledge,
    asJson,
    ...waiting,
  });
  return {
    id: "",
    model: BUILTIN_MODEL,
    asked: BUILTIN_MODEL,
    finish: "completed",
    usage: NO_USAGE,
    // It remembers images alone.
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
  { signal, onText }: Waiting,
): Promise<Answered> {
  const { agent, systemPrompt, passages, turns, asJson } = question;
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
  const request = { model, messages: prompt.messages, temperature: agent.temperature, asJson };
  // JSON is told in one piece, once it is known to be some: pieces cannot be taken back when the second model is asked.
  const onPiece = onText && (asJson ? () => undefined : onText);
  const answer = await chat.answer(request, onPiece === undefined ? { signal } : { signal, onText: onPiece });
  const text = asJson ? jsonOf(answer, model) : answer.text;
  if (asJson) onText?.(text);
  return {
    id: answer.id,
    text,
    model: answer.model,
    asked: model,
    finish: answer.finish,
    usage: answer.usage,
    citations: citationsOf(text, prompt.passages),
    toolsData: {},
    turnsLeftOut: prompt.turnsLeftOut,
    passagesLeftOut: prompt.passagesLeftOut,
    firstAttemptError: answer.problem,
  };
}

/** The object that was asked for. Half of one is none, whatever took the other half away. */
function jsonOf({ text, finish, problem, usage }: ModelAnswer, model: string): string {
  const json = finish === "error" ? undefined : jsonObjectOf(text);
  if (json !== undefined) return json;
  const did = {
    completed: "it did not answer one JSON object",
    truncated: "it did not come to the end of its JSON within its limit",
    content_filter: "a filter left no JSON object of its answer",
    error: `its JSON broke off (${problem})`,
  };
  throw unusableAnswer(model, did[finish], usage);
}

function tooLong(contextTokens: number): Refusal {
  return new Refusal(
    "text_too_large",
    `user: the question and the agent's prompt do not fit into the model's window of ${contextTokens} tokens.`,
    { field: "user", hint: "Ask shorter, or tell the model's true window with kb.chat.models." },
  );
}

const FENCE = "```";

/** The one JSON object of an answer that was to be nothing else, out of the fences that some models put around it. Undefined: it is none. Pure. */
export function jsonObjectOf(text: string): string | undefined {
  const bare = unfenced(text.trim());
  try {
    const value: unknown = JSON.parse(bare);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? bare : undefined;
  } catch {
    return undefined; // no JSON
  }
}

/** By places and not by a pattern, which would try every way to split a long answer. */
function unfenced(text: string): string {
  const head = text.indexOf("\n");
  const isFenced = text.startsWith(FENCE) && text.endsWith(FENCE) && head !== -1;
  if (!isFenced || !["", "json"].includes(text.slice(FENCE.length, head).trim())) return text;
  return text.slice(head, -FENCE.length).trim();
}
