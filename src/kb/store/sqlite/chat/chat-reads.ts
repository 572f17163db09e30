import type { StoredThread, StoredTurn, ThreadImage } from "../../chat.ts";
import type { Inside } from "../../methods.ts";
import type { StoredFile } from "../../files.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of threads. */
export type ChatReads = Pick<Inside<"read" | "lookup">["records"], "thread" | "threads">;

/** Later than any time. */
const AFTER_ALL = "9999";
const NO_THREAD = { exists: false, turns: [], more: false, newest: undefined, images: [] } as const;

/** Prepares the statements on a connection of either kind. */
export function prepareChatReads(db: Connection): ChatReads {
  const selectThread = db
    .prepare<[string, string, string], number>(
      "SELECT number FROM chat_thread WHERE account_id = ? AND agent_id = ? AND thread_id = ?",
    )
    .pluck();
  const selectTurns = db.prepare<[number, number, number, number], StoredTurn>(`
    SELECT number, message_id AS messageId, created_at AS createdAt, user, answer, iif(?, shown, '') AS shown FROM chat_turn
    WHERE thread = ? AND number < ? ORDER BY number DESC LIMIT ?`);
  const firstTurn = "SELECT min(number) FROM chat_turn WHERE thread = chat_thread.number";
  const selectThreads = db.prepare<object, StoredThread>(`
    SELECT number, thread_id AS threadId, used_at AS usedAt,
      (SELECT count(*) FROM chat_turn WHERE thread = chat_thread.number) AS turns,
      (SELECT substr(user, 1, @questionChars) FROM chat_turn WHERE number = (${firstTurn})) AS question
    FROM chat_thread
    WHERE account_id = @accountId AND agent_id = @id AND (used_at, number) < (@usedAt, @number)
    ORDER BY used_at DESC, number DESC LIMIT @rows`);
  const selectImages = db.prepare<[number, string, number], StoredFile & { readonly afterTurn: number }>(`
    SELECT stored_file.token, account_id AS accountId, name, media_type AS mediaType, size_bytes AS sizeBytes, sha256,
      created_at AS createdAt, after_turn AS afterTurn
    FROM chat_image JOIN stored_file ON stored_file.token = chat_image.token
    WHERE thread = ? AND linked_at >= ? ORDER BY position DESC, linked_at DESC, stored_file.token LIMIT ?`);

  return {
    threads: ({ after = { usedAt: AFTER_ALL, number: 0 }, limit, ...query }) => {
      // One row more than the limit shows whether there are more.
      const threads = selectThreads.all({ ...query, ...after, rows: limit + 1 });
      return { threads: threads.slice(0, limit), more: threads.length > limit };
    },
    thread: ({ accountId, agentId, threadId, turnsMax, charsMax, imagesMax, imagesSinceIso, ...query }) => {
      const { withShown = false, beforeTurn = Number.MAX_SAFE_INTEGER } = query;
      const thread = selectThread.get(accountId, agentId, threadId);
      if (thread === undefined) return NO_THREAD;
      const turns: StoredTurn[] = [];
      let chars = 0;
      let more = false;
      // One row more than the limit shows whether there are more.
      for (const turn of selectTurns.iterate(Number(withShown), thread, beforeTurn, turnsMax + 1)) {
        more = turns.length === turnsMax || chars >= charsMax;
        if (more) break;
        turns.push(turn);
        chars += turn.user.length + turn.answer.length + turn.shown.length;
      }
      turns.reverse();
      const images = selectImages
        .all(thread, imagesSinceIso, imagesMax)
        .map(({ afterTurn, ...file }): ThreadImage => {
          const at = turns.findIndex(({ number }) => number > afterTurn);
          return Object.assign(file, { turnAt: at === -1 ? undefined : at });
        });
      return { exists: true, turns, more, newest: turns.at(-1)?.number, images };
    },
  };
}
