import type { Erased, Erasure } from "../../erasure.ts";
import type { Inside } from "../../methods.ts";
import { erasedMessage, withoutText } from "../../rows/webhooks.ts";
import { answerEventId } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";
import type { ResourceWrites } from "./writes.ts";

/** Removals of documents without a trace. Each runs inside a transaction of the caller. */
export type ErasureWrites = Pick<Inside<"free">["records"], "eraseResources" | "eraseOwner">;

/** The parameters of the statements. */
interface Selected {
  readonly accountId: string;
  /** Ids of resources, as JSON. */
  readonly ids: string;
}

const IDS = "(SELECT value FROM json_each(@ids))";
/** The files that the resources were the last to use. */
const FILES = `(SELECT token FROM stored_file WHERE account_id = @accountId AND released_of IN ${IDS})`;

/** Prepares the statements on the writing connection. */
export function prepareErasures(db: Connection, resources: Pick<ResourceWrites, "remove">): ErasureWrites {
  const deleteRecords = db.prepare<[Selected]>(
    `DELETE FROM resource WHERE id IN ${IDS} AND account_id = @accountId`,
  );
  // An empty scope waits for another owner, under a name that no owner has.
  const forgetOwner = db.prepare(`
    UPDATE scope SET owner_id = char(0) || number WHERE owner_id = @ownerId AND resources = 0
      AND collection_id IN (SELECT id FROM collection WHERE account_id = @accountId)
      AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.scope = scope.number)`);
  const forgetRequests = prepareRequests(db);
  const forgetMessages = prepareMessages(db);
  const forgetTurns = prepareTurns(db);

  return {
    eraseResources: (erasure) => {
      const { accountId, nowIso } = erasure;
      const selected = { accountId, ids: JSON.stringify(erasure.ids) };
      let chunks = 0;
      for (const id of erasure.ids) {
        const live = resources.remove({ accountId, id, nowIso }, (deleted) => withoutText(deleted, erasure));
        chunks += live?.chunkCount ?? 0;
      }
      const documents = deleteRecords.run(selected).changes;
      const { answers, ...turns } = forgetTurns(selected);
      const messages = answers + forgetMessages(erasure);
      return { documents, chunks, requests: forgetRequests(selected), messages, ...turns };
    },
    eraseOwner: (at) => void forgetOwner.run(at),
  };
}

/** Prepares the removal of noted requests about resources. */
function prepareRequests(db: Connection): (selected: Selected) => number {
  // As after a delete, a repeated request is answered from the id alone.
  const forget = db.prepare<[Selected]>(`
    UPDATE kept_answer SET body = json_object('resourceId', json_extract(body, '$.resource.id')), text_of = NULL
    WHERE account_id = @accountId AND json_extract(body, '$.resource.id') IN ${IDS}`);
  return (selected) => forget.run(selected).changes;
}

/** Prepares the removal of what webhook messages say about resources. */
function prepareMessages(db: Connection): (erasure: Erasure) => number {
  const select = db.prepare<[string], { readonly number: number; readonly body: string }>(
    "SELECT number, body FROM job WHERE queue = 'webhook' AND account_id = ?",
  );
  const update = db.prepare("UPDATE job SET body = ? WHERE number = ?");
  const remove = db.prepare("DELETE FROM job WHERE number = ?");
  return (erasure) => {
    const changes: (() => unknown)[] = [];
    for (const { number, body } of select.iterate(erasure.accountId)) {
      if (!erasure.ids.some((id) => body.includes(id))) continue;
      const erased = erasedMessage(body, erasure);
      if (erased === undefined) changes.push(() => remove.run(number));
      else if (erased !== body) changes.push(() => update.run(erased, number));
    }
    for (const change of changes) change();
    return changes.length;
  };
}

/** Prepares the removal of turns that were made from resources, of the messages with their answers, and of their images. */
function prepareTurns(db: Connection) {
  const ofAccount = "SELECT number FROM chat_thread WHERE account_id = @accountId";
  const deleteImages = db.prepare<[Selected]>(
    `DELETE FROM chat_image WHERE thread IN (${ofAccount}) AND token IN ${FILES}`,
  );
  // A later answer of the thread may repeat what an earlier one quoted.
  const deleteTurns = db
    .prepare<[Selected], string>(`
    DELETE FROM chat_turn WHERE number IN (
      SELECT later.number FROM chat_turn AS later JOIN (
        SELECT thread, min(number) AS first FROM chat_turn WHERE thread IN (${ofAccount})
          AND EXISTS (SELECT 1 FROM json_each(reads) WHERE value IN ${IDS}) GROUP BY thread
      ) AS made ON made.thread = later.thread AND later.number >= made.first)
    RETURNING message_id`)
    .pluck();
  const deleteAnswer = db.prepare("DELETE FROM job WHERE queue = 'webhook' AND account_id = ? AND name = ?");
  const countUnknown = db
    .prepare<[Selected], number>(
      `SELECT count(*) FROM chat_turn WHERE reads IS NULL AND thread IN (${ofAccount})`,
    )
    .pluck();
  return (
    selected: Selected,
  ): Pick<Erased, "turns" | "images" | "unknownTurns"> & { readonly answers: number } => {
    const turns = deleteTurns.all(selected);
    let answers = 0;
    for (const id of turns) answers += deleteAnswer.run(selected.accountId, answerEventId(id)).changes;
    return {
      turns: turns.length,
      answers,
      images: deleteImages.run(selected).changes,
      unknownTurns: countUnknown.get(selected) ?? 0,
    };
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareErasureReads(db: Connection): Pick<Inside<"read">["records"], "resourcesOf"> {
  const select = db
    .prepare<[string, string, number], string>(`
    SELECT resource.id FROM resource JOIN scope ON scope.number = resource.scope
      JOIN collection ON collection.id = scope.collection_id
    WHERE collection.account_id = ? AND owner_id = ? LIMIT ?`)
    .pluck();
  return { resourcesOf: ({ accountId, ownerId, limit }) => select.all(accountId, ownerId, limit) };
}
