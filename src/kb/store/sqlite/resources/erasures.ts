import type { Inside } from "../../methods.ts";
import type { ResourceKey } from "../../resources.ts";
import { erasedMessage } from "../../rows/webhooks.ts";
import { answerEventId } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Removals of deleted documents without a trace. Each runs inside a transaction of the caller. */
export type ErasureWrites = Pick<Inside<"free">["records"], "eraseResource">;

/** Prepares the statements on the writing connection. */
export function prepareErasures(db: Connection): ErasureWrites {
  const deleteRecord = db.prepare<[ResourceKey]>(
    "DELETE FROM resource WHERE id = @id AND account_id = @accountId AND is_deleted = 1",
  );
  // As after a delete, a repeated request is answered from the id alone.
  const forgetRequests = db.prepare<[ResourceKey]>(`
    UPDATE kept_answer SET body = json_object('resourceId', json_extract(body, '$.resource.id')), text_of = NULL
    WHERE account_id = @accountId AND json_extract(body, '$.resource.id') = @id`);
  const forgetMessages = prepareMessages(db);
  const forgetTurns = prepareTurns(db);
  return {
    eraseResource: (at) => {
      deleteRecord.run(at);
      forgetTurns(at);
      forgetMessages(at);
      forgetRequests.run(at);
    },
  };
}

/** Prepares the removal of what webhook messages say about a resource. */
function prepareMessages(db: Connection): (at: ResourceKey) => void {
  const select = db.prepare<[ResourceKey], { readonly number: number; readonly body: string }>(`
    SELECT number, body FROM job WHERE queue = 'webhook' AND account_id = @accountId AND instr(body, @id) > 0`);
  const update = db.prepare("UPDATE job SET body = ? WHERE number = ?");
  const remove = db.prepare("DELETE FROM job WHERE number = ?");
  return (at) => {
    for (const { number, body } of select.all(at)) {
      const erased = erasedMessage(body);
      if (erased === undefined) remove.run(number);
      else update.run(erased, number);
    }
  };
}

/** Prepares the removal of turns that were made from a resource, of the messages with their answers, and of their images. */
function prepareTurns(db: Connection): (at: ResourceKey) => void {
  const ofAccount = "SELECT number FROM chat_thread WHERE account_id = @accountId";
  const deleteImages = db.prepare<[ResourceKey]>(`
    DELETE FROM chat_image WHERE thread IN (${ofAccount})
      AND token IN (SELECT token FROM stored_file WHERE account_id = @accountId AND released_of = @id)`);
  // A later answer of the thread may repeat what an earlier one quoted.
  const deleteTurns = db
    .prepare<[ResourceKey], string>(`
    DELETE FROM chat_turn WHERE number IN (
      SELECT later.number FROM chat_turn AS later JOIN (
        SELECT thread, min(number) AS first FROM chat_turn WHERE thread IN (${ofAccount})
          AND EXISTS (SELECT 1 FROM json_each(reads) WHERE value = @id) GROUP BY thread
      ) AS made ON made.thread = later.thread AND later.number >= made.first)
    RETURNING message_id`)
    .pluck();
  const deleteAnswer = db.prepare("DELETE FROM job WHERE queue = 'webhook' AND account_id = ? AND name = ?");
  return (at) => {
    for (const turn of deleteTurns.all(at)) deleteAnswer.run(at.accountId, answerEventId(turn));
    deleteImages.run(at);
  };
}
