import { signal } from "@preact/signals";
import type { ChatResponse } from "../../wire/chat.ts";
import { ROUTES } from "../../wire/routes.ts";
import type { ThreadEntry, ThreadsAnswer, ThreadTurn, TurnsAnswer } from "../../wire/threads.ts";
import { ask } from "../client/api.ts";
import { askAgent } from "./stream.ts";

/** A question with its answer so far. */
export interface Turn {
  readonly key: string;
  readonly question: string;
  readonly images: readonly string[];
  /** The answer so far. */
  readonly text: string;
  readonly response?: ChatResponse;
  /** The turn as the service stores it, if it comes from an earlier visit. */
  readonly stored?: ThreadTurn;
  readonly error?: unknown;
  readonly isStopped?: boolean;
}

/** A conversation; it stays while a person looks at other pages. */
export interface Thread {
  readonly id: string;
  readonly agent: string;
  readonly turns: readonly Turn[];
  /** Leads to older turns than those of `turns`; null: there are none. */
  readonly older: string | null;
}

/** The conversation that is shown. */
export const thread = signal<Thread | undefined>(undefined);
/** Stops the answer in progress. */
export const running = signal<AbortController | undefined>(undefined);
/** Grows when the service has other threads than before. */
export const threadsTurn = signal(0);

/** Loads the threads of an agent, the last used first, and the cursor of the rest. */
export async function loadThreads(
  agent: string,
  cursor: string | undefined,
  abort: AbortSignal,
): Promise<{ readonly threads: readonly ThreadEntry[]; readonly nextCursor: string | null }> {
  const query = { agent_id: agent, cursor };
  return (await ask<ThreadsAnswer>(ROUTES.threads, { query, signal: abort })).data;
}

/** Shows a conversation that the service remembers. Throws `RequestError`. */
export async function openThread(agent: string, id: string, abort: AbortSignal): Promise<void> {
  const { turns, nextCursor } = await loadTurns(agent, id, undefined, abort);
  if (!abort.aborted) thread.value = { id, agent, turns: turns.map(turnOf), older: nextCursor };
}

/** Adds the turns before those that are shown. */
export async function loadOlder({ agent, id, older }: Thread): Promise<void> {
  if (older === null) return;
  const { turns, nextCursor } = await loadTurns(agent, id, older);
  const { value } = thread;
  // Another conversation may have been opened meanwhile.
  if (value?.id !== id || value.older !== older) return;
  thread.value = { ...value, turns: [...turns.map(turnOf), ...value.turns], older: nextCursor };
}

/** Deletes a conversation at the service. */
export async function deleteThread(agent: string, id: string): Promise<void> {
  await ask(ROUTES.threads, { method: "DELETE", query: { agent_id: agent, thread_id: id } });
  if (thread.peek()?.id === id) thread.value = undefined;
  threadsTurn.value += 1;
}

/** Asks in the conversation that is shown, or begins one. */
export async function sendQuestion(
  agent: string,
  question: string,
  images: readonly string[],
): Promise<void> {
  const before =
    thread.peek()?.agent === agent
      ? thread.peek()
      : { id: `console-${crypto.randomUUID()}`, agent, turns: [], older: null };
  if (before === undefined) return;
  const key = crypto.randomUUID();
  thread.value = { ...before, turns: [...before.turns, { key, question, images, text: "" }] };
  const change = (facts: (turn: Turn) => Partial<Turn>): void => {
    const { value } = thread;
    if (value === undefined) return;
    thread.value = {
      ...value,
      turns: value.turns.map((turn) => (turn.key === key ? { ...turn, ...facts(turn) } : turn)),
    };
  };
  const abort = new AbortController();
  running.value = abort;
  try {
    const response = await askAgent(
      {
        agent_id: agent,
        user: question,
        thread_id: before.id,
        user_urls: images.map((url) => ({ type: "image", url })),
      },
      (piece) => change(({ text }) => ({ text: text + piece })),
      abort.signal,
    );
    change(() => ({ text: response.data.content, response }));
  } catch (error) {
    change(() => (abort.signal.aborted ? { isStopped: true } : { error }));
  } finally {
    running.value = undefined;
    threadsTurn.value += 1;
  }
}

async function loadTurns(
  agent: string,
  id: string,
  cursor?: string,
  abort?: AbortSignal,
): Promise<TurnsAnswer["data"]> {
  const query = { agent_id: agent, thread_id: id, cursor };
  return (await ask<TurnsAnswer>(`${ROUTES.threads}/turns`, { query, signal: abort })).data;
}

function turnOf(stored: ThreadTurn): Turn {
  const { message_id: key, user: question, content: text, images } = stored;
  return { key, question, images, text, stored };
}
