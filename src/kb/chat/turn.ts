import { KbsyncError } from "../../lib/failure.ts";
import type { Gate } from "../../lib/gate.ts";
import { PROMPT_CHARS_MAX } from "../../wire/agent.ts";
import { IMAGES_MAX, USER_CHARS_MAX } from "../../wire/chat.ts";
import type { Annotation, ChatBody, ChatResponse } from "../../wire/chat.ts";
import { isRemovable, noAgent, type Agent } from "../agents/agents.ts";
import { costOf, sumUsage, type ModelFacts } from "../models/price.ts";
import type { Lease } from "../queue/queue.ts";
import { nowIso } from "../resources/knowledge-base.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import type { NewTurn, ThreadMemory } from "../store/chat.ts";
import type { StoredFile } from "../store/records.ts";
import type { NewDelivery } from "../store/webhooks.ts";
import { ask, modelsOf, type Answerers, type Attempted, type Waiting } from "./attempts.ts";
import { BUILTIN_MODEL, rememberedBuiltin } from "./builtin.ts";
import { findPassages } from "./find-passages.ts";
import { addThreadImages, loadImages, renderedBytes } from "./images.ts";
import type { ImageParts, ImageSource, LeftOut } from "./images.ts";

/** Turns read of a thread: more than fit into a usual window. */
const TURNS_READ_MAX = 200;
/** Characters of them; a window of a million tokens holds some three million. */
const TURN_CHARS_MAX = 1_000_000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What a turn works with. */
export interface TurnParts extends ImageParts {
  readonly answerers: Answerers;
  readonly factsOf: (model: string) => ModelFacts | undefined;
  readonly imageDays: number;
  /** Room for the bytes of the images that models are shown. */
  readonly showing: Gate;
  /** Notified of what went wrong behind an answer that was stored and is given all the same. */
  readonly onProblem: (error: unknown) => void;
}

/** A request that was checked. */
export interface Asking {
  readonly accountId: string;
  readonly agent: Agent;
  readonly body: ChatBody;
  readonly sources: readonly ImageSource[];
  /** Of the answer. */
  readonly messageId: string;
  /** The job whose work this is, and what is to be delivered then. */
  readonly job?: { readonly lease: Lease; readonly deliveryOf: (response: ChatResponse) => NewDelivery };
}

/**
 * One question and its answer. What is remembered of it is written whole, when the answer is there; when it throws,
 * nothing was. Throws what images, search and models throw, and `agent_not_found` where the agent went meanwhile.
 */
export async function answerTurn(parts: TurnParts, asking: Asking, waiting: Waiting): Promise<ChatResponse> {
  const { kb } = parts;
  const { accountId, agent, body, sources } = asking;
  const fetched = new Set<string>();
  try {
    const system = filled(agent.systemPrompt, body, PROMPT_CHARS_MAX);
    const user = filled(body.user ?? "", body, USER_CHARS_MAX);
    const question = user.text.trim();
    const memory = await remembered(parts, asking);
    const render = modelsOf(agent, parts.answerers).some((model) => model !== BUILTIN_MODEL);
    const { signal } = waiting;
    const own = await loadImages(parts, accountId, sources, { render, signal }, (token) =>
      fetched.add(token),
    );
    const options = { render, signal, imagesMax: IMAGES_MAX };
    const { images, leftOut } = await addThreadImages(parts, own, memory.images, options);
    if (question === "" && images.length === 0) throw nothingAsked();
    const passages = await findPassages(kb, accountId, agent.knowledge, question);
    const work = (): Promise<Attempted> =>
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
        waiting,
      );
    const shownBytes = renderedBytes(images);
    const answered = await (shownBytes === 0
      ? work()
      : parts.showing.run(work, { signal, weight: shownBytes, path: [accountId] }));
    const missing = new Set([...system.missing, ...user.missing]);
    const annotations = annotationsOf(answered, [...missing], leftOut);
    const urls = images.map(({ url }) => url);
    const response = responseOf(parts, asking, answered, annotations, urls);

    const keeps = body.thread_id !== null && body.thread_id !== undefined && answered.finish !== "error";
    const files = keeps ? own.filter(({ isNew }) => isNew).map(({ file }) => file) : [];
    // A stream whose reader left: what nobody saw is not remembered.
    signal.throwIfAborted();
    const isWritten = await addTurn(parts, asking, {
      turn: keeps ? { user: question, answer: rememberedAnswer(answered) } : undefined,
      files,
      images: own.map(({ file }) => file.token),
      ...(asking.job === undefined
        ? {}
        : { job: asking.job.lease, delivery: asking.job.deliveryOf(response) }),
    });
    if (isWritten) await keepFiles(parts, files, fetched);
    return response;
  } finally {
    for (const token of fetched) await kb.files.discard(token);
  }
}

/** A thread's images may be all that is asked about: only once they are looked for is it known that nothing is. */
function nothingAsked(): Refusal {
  return invalidField(
    "user",
    "expected a text that is not empty once its variables are filled in, or an image in user_urls",
  );
}

/** Throws `text_too_large` where the values make a text of it that is longer than may be sent without them. */
function filled(text: string, { variables = {} }: ChatBody, charsMax: number): Filled {
  const done = fillVariables(text, variables, charsMax);
  if (done !== undefined) return done;
  throw new Refusal(
    "text_too_large",
    `variables: filled in, they make a text of more than ${charsMax} characters.`,
    { field: "variables", hint: "Send shorter values, or name them less often." },
  );
}

/**
 * Moves files whose rows are written to their place. From then on nothing may take their bytes away, nor the answer from
 * whoever asked: where moving fails, they lie in `incoming/`, where the next start finds their rows.
 */
async function keepFiles(
  { kb, onProblem }: TurnParts,
  files: readonly StoredFile[],
  fetched: Set<string>,
): Promise<void> {
  for (const { token } of files) fetched.delete(token);
  for (const { token } of files) await kb.files.keep(token).catch(onProblem);
}

async function remembered(
  { kb, imageDays }: TurnParts,
  { accountId, agent, body }: Asking,
): Promise<ThreadMemory> {
  const { thread_id: threadId } = body;
  if (threadId === null || threadId === undefined) return { turns: [], more: false, images: [] };
  return kb.store.thread({
    accountId,
    agentId: agent.id,
    threadId: threadId.toWellFormed(),
    turnsMax: TURNS_READ_MAX,
    charsMax: TURN_CHARS_MAX,
    // Twice as many as take part: some may not be there any more.
    imagesMax: 2 * IMAGES_MAX,
    imagesSinceIso: new Date(kb.nowMs() - imageDays * DAY_MS).toISOString(),
  });
}

/** As a model is shown it at the next question. */
function rememberedAnswer({ asked, text }: Attempted): string {
  return asked === BUILTIN_MODEL ? rememberedBuiltin(text) : text;
}

/** False: there was nothing to write, or an earlier run of the job wrote it. */
async function addTurn(
  { kb }: TurnParts,
  { accountId, agent, body, messageId }: Asking,
  what: Pick<NewTurn, "turn" | "files" | "images" | "job" | "delivery">,
): Promise<boolean> {
  if (what.turn === undefined && what.job === undefined) return false;
  try {
    return await kb.store.addTurn({
      accountId,
      agentId: agent.id,
      isStoredAgent: isRemovable(agent),
      agentCreatedAt: agent.createdAt,
      threadId: body.thread_id?.toWellFormed(),
      messageId,
      nowIso: nowIso(kb),
      ...what,
    });
  } catch (error) {
    if (error instanceof KbsyncError && error.code === "agent_gone") throw noAgent(agent.id, "agent_id");
    throw error;
  }
}

function annotationsOf(
  { citations, turnsLeftOut, passagesLeftOut, asked }: Attempted,
  missing: readonly string[],
  leftOut: readonly LeftOut[],
): Annotation[] {
  const annotations: Annotation[] = [...citations];
  for (const name of missing) annotations.push({ type: "missing_variable", name });
  for (const { url, reason } of leftOut) annotations.push({ type: "image_left_out", url, reason });
  // The builtin agent never looks at earlier messages, and says what it does.
  if (turnsLeftOut > 0 && asked !== BUILTIN_MODEL) {
    annotations.push({ type: "messages_left_out", count: 2 * turnsLeftOut });
  }
  if (passagesLeftOut > 0) annotations.push({ type: "passages_left_out", count: passagesLeftOut });
  return annotations;
}

function responseOf(
  { factsOf }: TurnParts,
  { messageId }: Asking,
  answered: Attempted,
  annotations: Annotation[],
  images: string[],
): ChatResponse {
  const spent = [answered, ...(answered.refused === undefined ? [] : [answered.refused])];
  const usage = sumUsage(spent.map((each) => each.usage));
  return {
    data: {
      id: answered.id === "" ? messageId : answered.id,
      content: answered.text,
      model: answered.model,
      role: "assistant",
      finish_reason: answered.finish,
      tools_data: { ...answered.toolsData },
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
      cost: spent.reduce((sum, each) => sum + costOf(each.usage, factsOf(each.asked)), 0),
    },
  };
}

/** What fills `{{name}}`. */
type Variables = Readonly<Record<string, string | number | boolean>>;

/** A text with its variables filled in. */
interface Filled {
  readonly text: string;
  /** Names that stand in the text and have no value, each once; there they are left as written. */
  readonly missing: readonly string[];
}

/** Spaces are part of the match and trimmed later: a pattern that skips them tries every split of a long row of them. */
const PLACE = /\{\{([^{}\n]{1,200})\}\}/g;

/**
 * Fills in each `{{name}}`, once: what a value itself holds is text. Undefined: filled in, the text has more than
 * `charsMax` characters; then it is not made. Pure.
 */
export function fillVariables(text: string, variables: Variables, charsMax: number): Filled | undefined {
  const missing = new Set<string>();
  let chars = text.length;
  const replaced = text.replaceAll(PLACE, (written, spaced: string) => {
    const name = spaced.trim();
    if (name === "" || chars > charsMax) return written;
    // An own key: a variable may be called `constructor`.
    if (!Object.hasOwn(variables, name)) {
      missing.add(name);
      return written;
    }
    const value = String(variables[name]);
    chars += value.length - written.length;
    return chars > charsMax ? written : value;
  });
  return chars > charsMax ? undefined : { text: replaced.toWellFormed(), missing: [...missing] };
}
