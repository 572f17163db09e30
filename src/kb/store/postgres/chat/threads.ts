import { KbsyncError } from "../../../../lib/failure.ts";
import type { ChatRecords, NewTurn, StoredThread, StoredTurn, ThreadImage, ThreadQuery } from "../../chat.ts";
import type { StoredFile } from "../../files.ts";
import type { ThreadKey, ThreadLink } from "../../thread-link.ts";
import type { Transaction } from "../database/connections.ts";
import { addDelivery } from "../queue/deliveries.ts";
import { queueOn } from "../queue/queue.ts";
import { insertFile } from "../resources/files.ts";
import { noteQuestion } from "../resources/request-notes.ts";

/** Maximum turns of one thread; the oldest are evicted first. Far more than any context window holds. */
const TURNS_MAX = 1000;
/** Maximum images linked to one thread; the oldest are evicted first. */
const THREAD_IMAGES_MAX = 100;
/** Turns that are read at once: the memory may end before the next ones. */
const PAGE_TURNS = 50;
/** Later than any time. */
const AFTER_ALL = "9999";

/** Threads inside a transaction. */
export function threadsOn(
  tx: Transaction,
): Pick<
  ChatRecords,
  "thread" | "threads" | "removeThread" | "addTurn" | "addQuestion" | "purgeThreads" | "purgeThreadImages"
> {
  return {
    thread: (query) => readThread(tx, query),
    async threads({ after = { usedAt: AFTER_ALL, number: 0 }, limit, ...query }) {
      // One row more than the limit shows whether there are more.
      const threads = await tx.all<StoredThread>(
        `SELECT number, thread_id AS "threadId", used_at AS "usedAt",
          (SELECT count(*) FROM chat_turn WHERE thread = chat_thread.number) AS turns,
          (SELECT substr("user", 1, @questionChars::int) FROM chat_turn
            WHERE thread = chat_thread.number ORDER BY number LIMIT 1) AS question
        FROM chat_thread
        WHERE account_id = @accountId AND agent_id = @id AND (used_at, number) < (@usedAt, @number)
        ORDER BY used_at DESC, number DESC LIMIT @rows`,
        { ...query, ...after, rows: limit + 1 },
      );
      return { threads: threads.slice(0, limit), more: threads.length > limit };
    },
    async removeThread(at) {
      const thread = await findThread(tx, at, "FOR UPDATE");
      if (thread === undefined) return false;
      await tx.run("DELETE FROM chat_turn WHERE thread = @thread", { thread });
      await tx.run("DELETE FROM chat_image WHERE thread = @thread", { thread });
      await tx.run("DELETE FROM chat_thread WHERE number = @thread", { thread });
      return true;
    },
    addTurn: (turn) => addTurn(tx, turn),
    async addQuestion(job, sameTransaction) {
      if (sameTransaction?.request !== undefined)
        await noteQuestion(tx, job.accountId, job.name, sameTransaction.request);
      await queueOn(tx).put(job);
    },
    async purgeThreads(beforeIso, limit) {
      const turns = await tx.run(
        `DELETE FROM chat_turn WHERE number IN (
          SELECT chat_turn.number FROM chat_thread JOIN chat_turn ON chat_turn.thread = chat_thread.number
          WHERE used_at < @beforeIso LIMIT @limit)`,
        { beforeIso, limit },
      );
      const threads = await tx.run(
        `DELETE FROM chat_thread WHERE number IN (
          SELECT number FROM chat_thread WHERE used_at < @beforeIso
            AND NOT EXISTS (SELECT 1 FROM chat_turn WHERE thread = chat_thread.number)
            AND NOT EXISTS (SELECT 1 FROM chat_image WHERE thread = chat_thread.number)
          LIMIT @limit FOR UPDATE SKIP LOCKED)`,
        { beforeIso, limit: limit - turns },
      );
      return turns + threads;
    },
    purgeThreadImages: (beforeIso, limit) =>
      tx.run(
        `DELETE FROM chat_image WHERE (thread, token) IN (
          SELECT thread, token FROM chat_image WHERE linked_at < @beforeIso LIMIT @limit)`,
        { beforeIso, limit },
      ),
  };
}

/** Links a file to a thread. */
export async function linkImage(tx: Transaction, at: ThreadLink, token: string): Promise<void> {
  const thread = await openThread(tx, at);
  await link(tx, { thread, token, nowIso: at.nowIso, afterTurn: await lastTurn(tx, thread) });
}

async function readThread(
  tx: Transaction,
  { turnsMax, charsMax, imagesMax, imagesSinceIso, withShown = false, ...query }: ThreadQuery,
): ReturnType<ChatRecords["thread"]> {
  const thread = await findThread(tx, query);
  if (thread === undefined) return { exists: false, turns: [], more: false, newest: undefined, images: [] };
  const turns: StoredTurn[] = [];
  let chars = 0;
  let before = query.beforeTurn ?? Number.MAX_SAFE_INTEGER;
  let more = false;
  for (let size = PAGE_TURNS; !more && size === PAGE_TURNS;) {
    const page = await tx.all<StoredTurn>(
      `SELECT number, message_id AS "messageId", created_at AS "createdAt", "user", answer,
        CASE WHEN @withShown::boolean THEN shown ELSE '' END AS shown
      FROM chat_turn WHERE thread = @thread AND number < @before ORDER BY number DESC LIMIT ${PAGE_TURNS}`,
      { withShown, thread, before },
    );
    size = page.length;
    for (const turn of page) {
      more = turns.length === turnsMax || chars >= charsMax;
      if (more) break;
      turns.push(turn);
      before = turn.number;
      chars += turn.user.length + turn.answer.length + turn.shown.length;
    }
  }
  turns.reverse();
  const linked = await tx.all<StoredFile & { readonly afterTurn: number }>(
    `SELECT stored_file.token, account_id AS "accountId", name, media_type AS "mediaType", size_bytes AS "sizeBytes",
      sha256, created_at AS "createdAt", after_turn AS "afterTurn"
    FROM chat_image JOIN stored_file ON stored_file.token = chat_image.token
    WHERE thread = @thread AND linked_at >= @imagesSinceIso
    ORDER BY position DESC, linked_at DESC, stored_file.token LIMIT @imagesMax`,
    { thread, imagesSinceIso, imagesMax },
  );
  const images = linked.map(({ afterTurn, ...file }): ThreadImage => {
    const at = turns.findIndex(({ number }) => number > afterTurn);
    return Object.assign(file, { turnAt: at === -1 ? undefined : at });
  });
  return { exists: true, turns, more, newest: turns.at(-1)?.number, images };
}

async function addTurn(
  tx: Transaction,
  { turn, threadId, messageId, reads, ...made }: NewTurn,
): Promise<boolean> {
  const { job, delivery, files, images, nowIso } = made;
  await refuseErased(tx, made.accountId, reads, made.recalls);
  // Whatever ended the job has written its turn and its message: a second message would have the same id.
  if (job !== undefined && !(await queueOn(tx).complete(job))) return false;
  if (turn !== undefined && threadId !== undefined) {
    const { accountId, agentId } = made;
    const thread = await openThread(tx, { accountId, agentId, threadId, nowIso });
    const afterTurn = await lastTurn(tx, thread);
    for (const file of files) await insertFile(tx, file);
    await tx.run(
      `INSERT INTO chat_turn (thread, message_id, "user", answer, shown, reads, created_at)
      VALUES (@thread, @messageId, @user, @answer, @shown, @reads, @nowIso)`,
      { thread, messageId, ...turn, reads, nowIso },
    );
    await tx.run(
      `DELETE FROM chat_turn WHERE thread = @thread AND number <= (
        SELECT number FROM chat_turn WHERE thread = @thread ORDER BY number DESC LIMIT 1 OFFSET ${TURNS_MAX})`,
      { thread },
    );
    for (const token of images) await link(tx, { thread, token, nowIso, afterTurn });
  }
  if (delivery !== undefined) await addDelivery(tx, { ...delivery, reads });
  return true;
}

/** Throws `reads_gone` if a resource has no record, or a turn does not exist any more. An erasure meanwhile waits for this transaction. */
async function refuseErased(
  tx: Transaction,
  accountId: string,
  resources: readonly string[],
  turn: number | undefined,
): Promise<void> {
  const ids = [...new Set(resources)].toSorted();
  const found = await tx.all(
    "SELECT 1 FROM resource WHERE account_id = @accountId AND id = ANY (@ids::text[]) ORDER BY id FOR KEY SHARE",
    { accountId, ids },
  );
  const hasTurn =
    turn === undefined ||
    (await tx.get("SELECT 1 FROM chat_turn WHERE number = @turn", { turn })) !== undefined;
  if (found.length === ids.length && hasTurn) return;
  throw new KbsyncError("what the answer was made from has been erased", { code: "reads_gone" });
}

async function findThread(
  tx: Transaction,
  { accountId, agentId, threadId }: ThreadKey,
  lock = "",
): Promise<number | undefined> {
  const found = await tx.get<{ number: number }>(
    `SELECT number FROM chat_thread
    WHERE account_id = @accountId AND agent_id = @agentId AND thread_id = @threadId ${lock}`,
    { accountId, agentId, threadId },
  );
  return found?.number;
}

/** Returns the number of a thread, which it marks as used and locks. */
async function openThread(
  tx: Transaction,
  { accountId, agentId, threadId, nowIso }: ThreadKey & { readonly nowIso: string },
): Promise<number> {
  const thread = await tx.get<{ number: number }>(
    `INSERT INTO chat_thread (account_id, agent_id, thread_id, used_at)
    VALUES (@accountId, @agentId, @threadId, @nowIso)
    ON CONFLICT (account_id, agent_id, thread_id) DO UPDATE SET used_at = excluded.used_at
    RETURNING number`,
    { accountId, agentId, threadId, nowIso },
  );
  if (thread === undefined) throw new TypeError("a thread just written has no number");
  return thread.number;
}

/** Returns the number of the last turn; 0: there is none. */
async function lastTurn(tx: Transaction, thread: number): Promise<number> {
  const last = await tx.get<{ number: number | null }>(
    "SELECT max(number) AS number FROM chat_turn WHERE thread = @thread",
    { thread },
  );
  return last?.number ?? 0;
}

async function link(
  tx: Transaction,
  image: {
    readonly thread: number;
    readonly token: string;
    readonly nowIso: string;
    readonly afterTurn: number;
  },
): Promise<void> {
  await tx.run(
    `INSERT INTO chat_image (thread, token, linked_at, after_turn, position) VALUES (@thread, @token, @nowIso, @afterTurn,
      (SELECT coalesce(max(position), 0) + 1 FROM chat_image WHERE thread = @thread))
    ON CONFLICT (thread, token) DO UPDATE SET linked_at = excluded.linked_at, position = excluded.position,
      after_turn = excluded.after_turn`,
    image,
  );
  await tx.run(
    `DELETE FROM chat_image WHERE thread = @thread AND token IN (
      SELECT token FROM chat_image WHERE thread = @thread
      ORDER BY position DESC, linked_at DESC, token OFFSET ${THREAD_IMAGES_MAX})`,
    { thread: image.thread },
  );
}
