import { KbsyncError } from "../../lib/failure.ts";
import type { Gate } from "../../lib/gate.ts";
import { PROMPT_CHARS_MAX } from "../../wire/agent.ts";
import { USER_CHARS_MAX } from "../../wire/chat.ts";
import { IMAGES_MAX } from "../../wire/constants.ts";
import type { Annotation, ChatBody, ChatResponse } from "../../wire/chat.ts";
import type { Agent } from "../agents/agents.ts";
import { costOf, sumUsage, type ModelFacts } from "../models/price.ts";
import type { Lease } from "../queue/queue.ts";
import { nowIso } from "../resources/knowledge-base.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import { discardUnrecorded } from "../resources/upload.ts";
import type { NewTurn, ThreadMemory } from "../store/chat.ts";
import type { StoredFile } from "../store/files.ts";
import { shownText } from "./threads.ts";
import type { NewDelivery } from "../store/webhooks.ts";
import { ask, modelsOf, type Answerers, type AnswerResult, type AnswerOptions } from "./attempts.ts";
import { BUILTIN_MODEL, builtinMemory } from "./builtin.ts";
import { findParts, findPassages } from "./find-passages.ts";
import { addThreadImages, loadImages, renderedBytes } from "./images.ts";
import type { ImageParts, ImageSource, OmittedImage } from "./images.ts";
import { fill } from "./variables.ts";

/** Most turns read of a thread: more than fit into a usual window. */
const TURNS_READ_MAX = 200;
/** Most characters of these turns; a window of a million tokens holds some three million. */
const TURN_CHARS_MAX = 1_000_000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** The dependencies of a turn. */
export interface TurnParts extends ImageParts {
  readonly answerers: Answerers;
  readonly factsOf: (model: string) => ModelFacts | undefined;
  readonly imageDays: number;
  /** Bounds the bytes of images in flight to models. */
  readonly imageGate: Gate;
  /** Reports failures after an answer was stored; the answer is still returned. */
  readonly onProblem: (error: unknown) => void;
}

/** A checked request. */
export interface CheckedRequest {
  readonly accountId: string;
  readonly agent: Agent;
  readonly body: ChatBody;
  readonly sources: readonly ImageSource[];
  /** The id of the answer. */
  readonly messageId: string;
  /** Set for a queued request: the lease of its job, and the delivery of its answer. */
  readonly job?: { readonly lease: Lease; readonly deliveryOf: (response: ChatResponse) => NewDelivery };
}

/**
 * Answers one question. Writes the turn to its thread in one transaction after the answer is complete; if it throws, it has written
 * nothing. Throws what images, search and models throw.
 */
export async function answerTurn(
  parts: TurnParts,
  request: CheckedRequest,
  options: AnswerOptions,
): Promise<ChatResponse> {
  const { kb } = parts;
  const { accountId, agent, body, sources } = request;
  const fetched = new Set<string>();
  try {
    const system = fill(agent.systemPrompt, body, PROMPT_CHARS_MAX);
    const user = fill(body.user ?? "", body, USER_CHARS_MAX);
    const question = user.text.trim();
    const memory = await readMemory(parts, request);
    const render = modelsOf(agent, parts.answerers).some((model) => model !== BUILTIN_MODEL);
    const { signal } = options;
    const own = await loadImages(parts, accountId, sources, { render, signal }, (token) =>
      fetched.add(token),
    );
    const threadOptions = { render, signal, imagesMax: IMAGES_MAX };
    const { images, leftOut } = await addThreadImages(parts, own, memory.images, threadOptions);
    if (question === "" && images.length === 0) throw nothingAsked();
    const knowledge = await findParts(kb, accountId, agent.knowledge);
    const passages = await findPassages(kb, accountId, knowledge, question);
    const work = (): Promise<AnswerResult> =>
      ask(
        parts.answerers,
        {
          agent,
          systemPrompt: system.text,
          text: question,
          images,
          passages,
          turns: memory.turns,
          asJson: body.response_type === "json",
        },
        options,
      );
    const shownBytes = renderedBytes(images);
    const answered = await (shownBytes === 0
      ? work()
      : parts.imageGate.run(work, { signal, weight: shownBytes, path: [accountId] }));
    const missing = new Set([...system.missing, ...user.missing]);
    const annotations = annotationsOf(answered, [...missing], leftOut);
    const urls = images.map(({ url }) => url);
    const response = responseOf(parts, request, answered, annotations, urls);

    const isRemembered =
      body.thread_id !== null && body.thread_id !== undefined && answered.finish !== "error";
    const files = isRemembered ? own.filter(({ isNew }) => isNew).map(({ file }) => file) : [];
    // An answer whose client left is not remembered.
    signal.throwIfAborted();
    for (const { token } of files) await kb.files.save(token);
    const isWritten = await addTurn(parts, request, {
      turn: isRemembered
        ? { user: question, answer: rememberedAnswer(answered), shown: shownText(response) }
        : undefined,
      reads: [...new Set(passages.map(({ resourceId }) => resourceId))],
      recalls: memory.newest,
      files,
      images: own.map(({ file }) => file.token),
      ...(request.job === undefined
        ? {}
        : { job: request.job.lease, delivery: request.job.deliveryOf(response) }),
    }).catch(async (error: unknown) => {
      for (const { token } of files) {
        fetched.delete(token);
        await discardUnrecorded(kb, token, error);
      }
      throw error;
    });
    if (isWritten) await moveFiles(parts, files, fetched);
    return response;
  } finally {
    for (const token of fetched) await kb.files.discard(token);
  }
}

/** Thrown only after the thread's images were read: they may be all that a question is about. */
function nothingAsked(): Refusal {
  return invalidField(
    "user",
    "expected a text that is not empty once its variables are filled in, or an image in user_urls",
  );
}

/**
 * Moves files whose rows are written out of `incoming/`. From here on nothing may remove them or fail the answer: if a move fails,
 * `FileStore.recover` finds the row and moves the file.
 */
async function moveFiles(
  { kb, onProblem }: TurnParts,
  files: readonly StoredFile[],
  fetched: Set<string>,
): Promise<void> {
  for (const { token } of files) fetched.delete(token);
  for (const { token } of files) await kb.files.publish(token).catch(onProblem);
}

async function readMemory(
  { kb, imageDays }: TurnParts,
  { accountId, agent, body }: CheckedRequest,
): Promise<ThreadMemory> {
  const { thread_id: threadId } = body;
  if (threadId === null || threadId === undefined)
    return { exists: false, turns: [], more: false, newest: undefined, images: [] };
  return kb.records.thread({
    accountId,
    agentId: agent.id,
    threadId: threadId.toWellFormed(),
    turnsMax: TURNS_READ_MAX,
    charsMax: TURN_CHARS_MAX,
    // Twice as many as a question may have, because some may no longer exist.
    imagesMax: 2 * IMAGES_MAX,
    imagesSinceIso: new Date(kb.nowMs() - imageDays * DAY_MS).toISOString(),
  });
}

/** Returns an answer in the form in which the next question shows it to a model. */
function rememberedAnswer({ requestedModel, text }: AnswerResult): string {
  return requestedModel === BUILTIN_MODEL ? builtinMemory(text) : text;
}

/** Writes the turn. False: there is nothing to write, or an earlier run of the job wrote it. */
async function addTurn(
  { kb }: TurnParts,
  { accountId, agent, body, messageId }: CheckedRequest,
  result: Pick<NewTurn, "turn" | "reads" | "recalls" | "files" | "images" | "job" | "delivery">,
): Promise<boolean> {
  if (result.turn === undefined && result.job === undefined) return false;
  try {
    return await kb.records.addTurn({
      accountId,
      agentId: agent.id,
      threadId: body.thread_id?.toWellFormed(),
      messageId,
      nowIso: nowIso(kb),
      ...result,
    });
  } catch (error) {
    if (error instanceof KbsyncError && error.code === "reads_gone") throw erasedMeanwhile();
    throw error;
  }
}

/** The same question finds other passages. */
function erasedMeanwhile(): Refusal {
  return new Refusal("overloaded", "What the answer was made from was removed meanwhile; ask again.", {
    retryAfterSeconds: 1,
  });
}

function annotationsOf(
  { citations, turnsLeftOut, passagesLeftOut, requestedModel }: AnswerResult,
  missing: readonly string[],
  leftOut: readonly OmittedImage[],
): Annotation[] {
  const annotations: Annotation[] = [...citations];
  for (const name of missing) annotations.push({ type: "missing_variable", name });
  for (const { url, reason } of leftOut) annotations.push({ type: "image_left_out", url, reason });
  // The builtin agent never uses earlier messages, so it leaves none out.
  if (turnsLeftOut > 0 && requestedModel !== BUILTIN_MODEL) {
    annotations.push({ type: "messages_left_out", count: 2 * turnsLeftOut });
  }
  if (passagesLeftOut > 0) annotations.push({ type: "passages_left_out", count: passagesLeftOut });
  return annotations;
}

function responseOf(
  { factsOf }: TurnParts,
  { messageId }: CheckedRequest,
  answered: AnswerResult,
  annotations: Annotation[],
  images: string[],
): ChatResponse {
  const attempts = [answered, ...(answered.refused === undefined ? [] : [answered.refused])];
  const usage = sumUsage(attempts.map((each) => each.usage));
  return {
    data: {
      id: answered.id === "" ? messageId : answered.id,
      content: answered.text,
      model: answered.model,
      role: "assistant",
      finish_reason: answered.finish,
      tools_data: {},
      images,
      annotations,
      fallback: answered.fallback,
      firstAttemptError: answered.firstAttemptError,
      message_id: messageId,
    },
    usage: {
      total_tokens: usage.inputTokens + usage.outputTokens,
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cached_tokens: usage.cacheReadTokens,
      cache_read_input_tokens: usage.cacheReadTokens,
      cache_creation_input_tokens: usage.cacheCreationTokens,
      reasoning_tokens: usage.reasoningTokens,
      cost: attempts.reduce((sum, each) => sum + costOf(each.usage, factsOf(each.requestedModel)), 0),
    },
  };
}
