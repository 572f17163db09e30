import { KbsyncError } from "../../../../lib/failure.ts";
import type { Inside } from "../../methods.ts";
import type { ShownTurn } from "../../chat.ts";
import type { StoredFile } from "../../files.ts";
import type { ThreadKey, ThreadLink } from "../../thread-link.ts";
import type { Connection } from "../database/connection.ts";
import { prepareDeliveryQueue } from "../queue/delivery-queue.ts";
import type { QueueWrites } from "../queue/queue.ts";

/** Maximum turns of one thread; the oldest are evicted first. Far more than any context window holds. */
const TURNS_MAX = 1000;
/** Maximum images linked to one thread; the oldest are evicted first. */
const THREAD_IMAGES_MAX = 100;

/** Writes of threads. Each runs inside a transaction of the caller. */
export type ChatWrites = Pick<Inside<"write" | "free">["records"], "purgeThreads" | "purgeThreadImages"> &
  Pick<Inside<"free">["records"], "removeThread"> &
  Pick<Inside<"write">["records"], "addTurn"> & {
    /** Links a file to a thread. */
    linkImage(link: ThreadLink, token: string): void;
  };

/** Prepares the statements on the writing connection. `addFile` records a file. */
export function prepareChatWrites(
  db: Connection,
  queue: QueueWrites,
  addFile: (file: StoredFile) => void,
): ChatWrites {
  const deliveries = prepareDeliveryQueue(db);
  const { openThread, lastTurn, addTurn, link, ...purges } = prepareThreadWrites(db);
  const refuseErased = prepareErasedCheck(db);

  return {
    ...purges,
    addTurn: ({ turn, reads, recalls, files, images, job, delivery, threadId, messageId, ...at }) => {
      refuseErased(at.accountId, reads, recalls);
      // Whatever ended the job has written its turn and its message: a second message would have the same id.
      if (job !== undefined && !queue.complete(job)) return false;
      if (turn !== undefined && threadId !== undefined) {
        const thread = openThread({ ...at, threadId });
        const before = lastTurn(thread);
        for (const file of files) addFile(file);
        addTurn({ thread, messageId, ...turn, reads: JSON.stringify(reads), nowIso: at.nowIso });
        for (const token of images) link(thread, token, at.nowIso, before);
      }
      if (delivery !== undefined) deliveries.add({ ...delivery, reads });
      return true;
    },
    linkImage: (at, token) => {
      const thread = openThread(at);
      link(thread, token, at.nowIso, lastTurn(thread));
    },
  };
}

/** Prepares the check that throws `reads_gone` if a resource has no record, or a turn does not exist any more. */
function prepareErasedCheck(
  db: Connection,
): (accountId: string, resources: readonly string[], turn: number | undefined) => void {
  const selectErased = db.prepare<[string, string]>(`
    SELECT 1 FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM resource WHERE id = value AND account_id = ?) LIMIT 1`);
  const selectTurn = db.prepare<[number]>("SELECT 1 FROM chat_turn WHERE number = ?");
  return (accountId, resources, turn) => {
    const isErased =
      (resources.length > 0 && selectErased.get(JSON.stringify(resources), accountId) !== undefined) ||
      (turn !== undefined && selectTurn.get(turn) === undefined);
    if (!isErased) return;
    throw new KbsyncError("what the answer was made from has been erased", { code: "reads_gone" });
  };
}

/** Prepares the writes of threads: their turns and images. */
function prepareThreadWrites(db: Connection) {
  const touchThread = db
    .prepare<object, number>(`
    INSERT INTO chat_thread (account_id, agent_id, thread_id, used_at)
    VALUES (@accountId, @agentId, @threadId, @nowIso)
    ON CONFLICT (account_id, agent_id, thread_id) DO UPDATE SET used_at = excluded.used_at
    RETURNING number`)
    .pluck();
  const insertTurn = db.prepare(`
    INSERT INTO chat_turn (thread, message_id, user, answer, shown, reads, created_at)
    VALUES (@thread, @messageId, @user, @answer, @shown, @reads, @nowIso)`);
  const trimTurns = db.prepare(`
    DELETE FROM chat_turn WHERE thread = @thread AND number <= (
      SELECT number FROM chat_turn WHERE thread = @thread ORDER BY number DESC LIMIT 1 OFFSET ${TURNS_MAX})`);
  const upsertImage = db.prepare(`
    INSERT INTO chat_image (thread, token, linked_at, after_turn, position) VALUES (@thread, @token, @nowIso, @afterTurn,
      (SELECT coalesce(max(position), 0) + 1 FROM chat_image WHERE thread = @thread))
    ON CONFLICT (thread, token) DO UPDATE SET linked_at = excluded.linked_at, position = excluded.position,
      after_turn = excluded.after_turn`);
  const selectLastTurn = db
    .prepare<[number], number | null>("SELECT max(number) FROM chat_turn WHERE thread = ?")
    .pluck();
  const trimImages = db.prepare(`
    DELETE FROM chat_image WHERE thread = @thread AND token IN (
      SELECT token FROM chat_image WHERE thread = @thread
      ORDER BY position DESC, linked_at DESC, token LIMIT -1 OFFSET ${THREAD_IMAGES_MAX})`);
  const selectThread = db
    .prepare<ThreadKey, number>(
      "SELECT number FROM chat_thread WHERE account_id = @accountId AND agent_id = @agentId AND thread_id = @threadId",
    )
    .pluck();
  const deleteTurns = db.prepare("DELETE FROM chat_turn WHERE thread = ?");
  const deleteImages = db.prepare("DELETE FROM chat_image WHERE thread = ?");
  const deleteThread = db.prepare("DELETE FROM chat_thread WHERE number = ?");
  const purgeTurns = db.prepare(`
    DELETE FROM chat_turn WHERE number IN (
      SELECT chat_turn.number FROM chat_thread JOIN chat_turn ON chat_turn.thread = chat_thread.number
      WHERE used_at < ? LIMIT ?)`);
  const empty =
    "NOT EXISTS (SELECT 1 FROM chat_turn WHERE chat_turn.thread = chat_thread.number) AND NOT EXISTS (SELECT 1 FROM chat_image WHERE chat_image.thread = chat_thread.number)";
  const purgeThreads = db.prepare(`
    DELETE FROM chat_thread WHERE number IN (
      SELECT number FROM chat_thread WHERE used_at < ? AND ${empty} LIMIT ?)`);
  const purgeImages = db.prepare(`
    DELETE FROM chat_image WHERE (thread, token) IN (
      SELECT thread, token FROM chat_image WHERE linked_at < ? LIMIT ?)`);

  return {
    /** Returns the number of a thread, which it marks as used. */
    openThread: (at: ThreadKey & { readonly nowIso: string }): number => {
      const { accountId, agentId, threadId, nowIso } = at;
      const thread = touchThread.get({ accountId, agentId, threadId, nowIso });
      if (thread === undefined) throw new TypeError("a thread just written has no number");
      return thread;
    },
    /** Returns the number of the last turn; 0: there is none. */
    lastTurn: (thread: number): number => selectLastTurn.get(thread) ?? 0,
    addTurn: (
      turn: ShownTurn & {
        readonly thread: number;
        readonly messageId: string;
        /** JSON text. */
        readonly reads: string;
        readonly nowIso: string;
      },
    ): void => {
      insertTurn.run(turn);
      trimTurns.run(turn);
    },
    link: (thread: number, token: string, nowIso: string, afterTurn: number): void => {
      upsertImage.run({ thread, token, nowIso, afterTurn });
      trimImages.run({ thread });
    },
    removeThread: ({ accountId, agentId, threadId }: ThreadKey): boolean => {
      const thread = selectThread.get({ accountId, agentId, threadId });
      if (thread === undefined) return false;
      for (const statement of [deleteTurns, deleteImages, deleteThread]) statement.run(thread);
      return true;
    },
    purgeThreads: (beforeIso: string, limit: number): number => {
      const turns = purgeTurns.run(beforeIso, limit).changes;
      return turns + purgeThreads.run(beforeIso, limit - turns).changes;
    },
    purgeThreadImages: (beforeIso: string, limit: number): number =>
      purgeImages.run(beforeIso, limit).changes,
  };
}
