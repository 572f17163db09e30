import type { ErasureRecords } from "../../erasure.ts";
import type { ResourceKey } from "../../resources.ts";
import { erasedMessage } from "../../rows/webhooks.ts";
import { answerEventId } from "../../webhooks.ts";
import type { Transaction } from "../database/connections.ts";
import { lockScopes } from "../scopes/scopes.ts";

/** Removals of deleted documents without a trace, inside a transaction. */
export function erasuresOn(tx: Transaction): Pick<ErasureRecords, "eraseResource"> {
  return {
    async eraseResource({ accountId, id }) {
      const at = { accountId, id };
      await lockScopes(tx, accountId, [id]);
      await tx.run("DELETE FROM resource WHERE account_id = @accountId AND id = @id AND is_deleted", at);
      await forgetTurns(tx, at);
      await forgetMessages(tx, at);
      // As after a delete, a repeated request is answered from the id alone.
      await tx.run(
        `UPDATE kept_answer SET body = json_build_object('resourceId', about)::text, text_of = NULL
        WHERE account_id = @accountId AND about = @id AND body LIKE '{"resource":%'`,
        at,
      );
    },
  };
}

/** Removes what webhook messages say about a resource. */
async function forgetMessages(tx: Transaction, { accountId, id }: ResourceKey): Promise<void> {
  const found = await tx.all<{ number: number; body: string }>(
    "SELECT number, body FROM job WHERE queue = 'webhook' AND account_id = @accountId AND strpos(body, @id) > 0",
    { accountId, id },
  );
  for (const { number, body } of found) {
    const erased = erasedMessage(body);
    if (erased === undefined) await tx.run("DELETE FROM job WHERE number = @number", { number });
    else await tx.run("UPDATE job SET body = @erased WHERE number = @number", { number, erased });
  }
}

/** Removes turns that were made from a resource, the messages with their answers, and their images. */
async function forgetTurns(tx: Transaction, { accountId, id }: ResourceKey): Promise<void> {
  const ofAccount = "SELECT number FROM chat_thread WHERE account_id = @accountId";
  // A later answer of the thread may repeat what an earlier one quoted.
  const turns = await tx.all<{ id: string }>(
    `DELETE FROM chat_turn WHERE number IN (
      SELECT later.number FROM chat_turn AS later JOIN (
        SELECT thread, min(number) AS first FROM chat_turn WHERE thread IN (${ofAccount})
          AND reads && ARRAY[@id::text] GROUP BY thread
      ) AS made ON made.thread = later.thread AND later.number >= made.first)
    RETURNING message_id AS id`,
    { accountId, id },
  );
  await tx.run(
    "DELETE FROM job WHERE queue = 'webhook' AND account_id = @accountId AND name = ANY (@names::text[])",
    { accountId, names: turns.map((turn) => answerEventId(turn.id)) },
  );
  await tx.run(
    `DELETE FROM chat_image WHERE thread IN (${ofAccount})
      AND token IN (SELECT token FROM stored_file WHERE account_id = @accountId AND released_of = @id)`,
    { accountId, id },
  );
}
