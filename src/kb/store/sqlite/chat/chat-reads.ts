import type { StoredAgent, ThreadImage, Turn } from "../../chat.ts";
import type { Inside } from "../../methods.ts";
import type { StoredFile } from "../../records.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of agents and threads. */
export type ChatReads = Pick<Inside<"read" | "lookup">["records"], "agent" | "agents" | "thread">;

/** Prepares the statements on a connection of either kind. */
export function prepareChatReads(db: Connection): ChatReads {
  const columns = "account_id AS accountId, id, body, created_at AS createdAt, updated_at AS updatedAt";
  const selectAgent = db.prepare<[string, string], StoredAgent>(
    `SELECT ${columns} FROM agent WHERE account_id = ? AND id = ?`,
  );
  const selectAgents = db.prepare<[string], StoredAgent>(
    `SELECT ${columns} FROM agent WHERE account_id = ? ORDER BY created_at, id`,
  );
  const selectThread = db
    .prepare<[string, string, string], number>(
      "SELECT number FROM chat_thread WHERE account_id = ? AND agent_id = ? AND thread_id = ?",
    )
    .pluck();
  const selectTurns = db.prepare<[number, number], Turn & { readonly number: number }>(
    "SELECT number, user, answer FROM chat_turn WHERE thread = ? ORDER BY number DESC LIMIT ?",
  );
  const selectImages = db.prepare<[number, string, number], StoredFile & { readonly afterTurn: number }>(`
    SELECT stored_file.token, account_id AS accountId, name, media_type AS mediaType, size_bytes AS sizeBytes, sha256,
      created_at AS createdAt, after_turn AS afterTurn
    FROM chat_image JOIN stored_file ON stored_file.token = chat_image.token
    WHERE thread = ? AND linked_at >= ? ORDER BY position DESC, linked_at DESC, stored_file.token LIMIT ?`);

  return {
    agent: ({ accountId, id }) => selectAgent.get(accountId, id),
    agents: (accountId) => selectAgents.all(accountId),
    thread: ({ accountId, agentId, threadId, turnsMax, charsMax, imagesMax, imagesSinceIso }) => {
      const thread = selectThread.get(accountId, agentId, threadId);
      if (thread === undefined) return { turns: [], more: false, newest: undefined, images: [] };
      const turns: (Turn & { readonly number: number })[] = [];
      let chars = 0;
      let more = false;
      // One row more than the limit shows whether there are more.
      for (const turn of selectTurns.iterate(thread, turnsMax + 1)) {
        more = turns.length === turnsMax || chars >= charsMax;
        if (more) break;
        turns.push(turn);
        chars += turn.user.length + turn.answer.length;
      }
      turns.reverse();
      const images = selectImages
        .all(thread, imagesSinceIso, imagesMax)
        .map(({ afterTurn, ...file }): ThreadImage => {
          const at = turns.findIndex(({ number }) => number > afterTurn);
          return Object.assign(file, { turnAt: at === -1 ? undefined : at });
        });
      return {
        turns: turns.map(({ user, answer }) => ({ user, answer })),
        more,
        newest: turns.at(-1)?.number,
        images,
      };
    },
  };
}
