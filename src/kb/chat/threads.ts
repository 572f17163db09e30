import type { ChatResponse } from "../../wire/chat.ts";
import {
  QUESTION_CHARS,
  type ShownAnswer,
  type ThreadName,
  type ThreadsAnswer,
  type ThreadsQuery,
  type ThreadTurn,
  type TurnsAnswer,
  type TurnsQuery,
} from "../../wire/threads.ts";
import { invalidField, Refusal, shown } from "../resources/refusal.ts";
import type { ChatRecords, StoredThread, StoredTurn } from "../store/chat.ts";
import type { ThreadKey } from "../store/thread-link.ts";

/** Dependencies of the operations on threads. */
type Records = Pick<ChatRecords, "thread" | "threads" | "removeThread">;

/** Most characters of the turns of an answer. One turn may exceed it. */
const TURN_CHARS_MAX = 2_000_000;

/** Lists an agent's threads, the last used first. An unknown agent has none. */
export async function listThreads(
  records: Records,
  accountId: string,
  { agent_id: id, limit, cursor }: ThreadsQuery,
): Promise<ThreadsAnswer["data"]> {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const { threads, more } = await records.threads({
    accountId,
    id,
    after,
    limit,
    questionChars: QUESTION_CHARS,
  });
  const last = more ? threads.at(-1) : undefined;
  return {
    threads: threads.map(({ threadId, question, turns, usedAt }) => ({
      thread_id: threadId,
      question,
      turns,
      usedAt,
    })),
    nextCursor: last === undefined ? null : writeCursor(last),
  };
}

/** Returns the newest turns of a thread, or those before a cursor. Throws `thread_not_found`. */
export async function readTurns(
  records: Records,
  accountId: string,
  { limit, cursor, ...name }: TurnsQuery,
): Promise<TurnsAnswer["data"]> {
  const thread = await records.thread({
    ...keyOf(accountId, name),
    turnsMax: limit,
    charsMax: TURN_CHARS_MAX,
    imagesMax: 0,
    imagesSinceIso: "",
    withShown: true,
    beforeTurn: cursor === undefined ? undefined : Number(cursor),
  });
  if (!thread.exists) throw noThread(name);
  const [oldest] = thread.turns;
  const nextCursor = thread.more && oldest !== undefined ? String(oldest.number) : null;
  return { turns: thread.turns.map(turnOf), nextCursor };
}

/** Removes a thread with its turns; its images are no longer linked to it. Throws `thread_not_found`. */
export async function removeThread(
  records: Records,
  accountId: string,
  name: ThreadName,
): Promise<ThreadName> {
  if (!(await records.removeThread(keyOf(accountId, name)))) throw noThread(name);
  return { agent_id: name.agent_id, thread_id: name.thread_id };
}

/** Returns the text that a turn stores of what people see of its answer; `turnOf` reads it. */
export function shownText({ data: { content, model, annotations, images } }: ChatResponse): string {
  const answer: ShownAnswer = { content, model, annotations, images };
  return JSON.stringify(answer);
}

function turnOf({ messageId, user, shown: text, createdAt }: StoredTurn): ThreadTurn {
  const stored = JSON.parse(text) as ShownAnswer; // written by `shownText`
  return { message_id: messageId, user, createdAt, ...stored };
}

function keyOf(accountId: string, { agent_id: agentId, thread_id: threadId }: ThreadName): ThreadKey {
  return { accountId, agentId, threadId: threadId.toWellFormed() };
}

function noThread({ thread_id: id }: ThreadName): Refusal {
  return new Refusal("thread_not_found", `The agent has no thread ${shown(id)} for this key.`, {
    field: "thread_id",
    hint: "GET /v1/threads lists the threads of an agent. One that is not used for a while is removed.",
  });
}

function writeCursor({ usedAt, number }: StoredThread): string {
  return Buffer.from(`${usedAt} ${number}`).toString("base64url");
}

function readCursor(cursor: string): Pick<StoredThread, "usedAt" | "number"> {
  const [, usedAt, number] =
    /^(\d{4}-[\d:.T-]+Z) (\d{1,15})$/.exec(Buffer.from(cursor, "base64url").toString("latin1")) ?? [];
  if (usedAt !== undefined && number !== undefined) return { usedAt, number: Number(number) };
  throw invalidField("cursor", `expected a nextCursor of an earlier answer, got ${shown(cursor)}`);
}
