import type { Erased, Erasure, ErasureRecords } from "../../erasure.ts";
import { erasedMessage, withoutText } from "../../rows/webhooks.ts";
import { answerEventId } from "../../webhooks.ts";
import type { Transaction } from "../database/connections.ts";
import { lockScopes } from "../scopes/scopes.ts";
import { removeResource } from "./writes.ts";

/** The parameters of the statements. */
interface Selected {
  readonly accountId: string;
  readonly ids: readonly string[];
}

/** Removals of documents without a trace, inside a transaction. */
export function erasuresOn(
  tx: Transaction,
): Pick<ErasureRecords, "resourcesOf" | "eraseResources" | "eraseOwner"> {
  return {
    resourcesOf: async ({ accountId, ownerId, limit }) => {
      const found = await tx.all<{ id: string }>(
        `SELECT resource.id FROM resource JOIN scope ON scope.number = resource.scope
          JOIN collection ON collection.id = scope.collection_id
        WHERE resource.account_id = @accountId AND collection.account_id = @accountId AND owner_id = @ownerId LIMIT @limit`,
        { accountId, ownerId, limit },
      );
      return found.map(({ id }) => id);
    },
    async eraseResources(erasure) {
      const { accountId, ids, nowIso } = erasure;
      const selected = { accountId, ids };
      await lockScopes(tx, accountId, ids);
      let chunks = 0;
      for (const id of ids) {
        const live = await removeResource(tx, { accountId, id, nowIso }, (deleted) =>
          withoutText(deleted, erasure),
        );
        chunks += live?.chunkCount ?? 0;
      }
      const documents = await tx.run(
        "DELETE FROM resource WHERE account_id = @accountId AND id = ANY (@ids::text[])",
        selected,
      );
      const { answers, ...turns } = await forgetTurns(tx, selected);
      const messages = answers + (await forgetMessages(tx, erasure));
      return { documents, chunks, requests: await forgetRequests(tx, selected), messages, ...turns };
    },
    async eraseOwner({ accountId, ownerId }) {
      // The scope stays, because its row numbers are never used again, under a name that no owner has.
      await tx.run(
        `UPDATE scope SET owner_id = @noOwner || number WHERE owner_id = @ownerId AND resources = 0
          AND collection_id IN (SELECT id FROM collection WHERE account_id = @accountId)
          AND NOT EXISTS (
            SELECT 1 FROM resource WHERE resource.account_id = @accountId AND resource.scope = scope.number)`,
        { accountId, ownerId, noOwner: "\0" },
      );
    },
  };
}

/** Removes noted requests about resources. As after a delete, a repeated request is answered from the id alone. */
function forgetRequests(tx: Transaction, selected: Selected): Promise<number> {
  return tx.run(
    `UPDATE kept_answer SET body = json_build_object('resourceId', about)::text, text_of = NULL
    WHERE account_id = @accountId AND about = ANY (@ids::text[]) AND body LIKE '{"resource":%'`,
    { ...selected },
  );
}

/** Removes what webhook messages say about resources. */
async function forgetMessages(tx: Transaction, erasure: Erasure): Promise<number> {
  const found = await tx.all<{ number: number; body: string }>(
    `SELECT number, body FROM job WHERE queue = 'webhook' AND account_id = @accountId
      AND EXISTS (SELECT 1 FROM unnest(@ids::text[]) AS id WHERE strpos(body, id) > 0)`,
    { accountId: erasure.accountId, ids: erasure.ids },
  );
  let changed = 0;
  for (const { number, body } of found) {
    const erased = erasedMessage(body, erasure);
    if (erased === body) continue;
    changed += 1;
    if (erased === undefined) await tx.run("DELETE FROM job WHERE number = @number", { number });
    else await tx.run("UPDATE job SET body = @erased WHERE number = @number", { number, erased });
  }
  return changed;
}

/** Removes turns that were made from resources, the messages with their answers, and their images. */
async function forgetTurns(
  tx: Transaction,
  selected: Selected,
): Promise<Pick<Erased, "turns" | "images" | "unknownTurns"> & { readonly answers: number }> {
  const ofAccount = "SELECT number FROM chat_thread WHERE account_id = @accountId";
  // A later answer of the thread may repeat what an earlier one quoted.
  const turns = await tx.all<{ id: string }>(
    `DELETE FROM chat_turn WHERE number IN (
      SELECT later.number FROM chat_turn AS later JOIN (
        SELECT thread, min(number) AS first FROM chat_turn WHERE thread IN (${ofAccount})
          AND reads && @ids::text[] GROUP BY thread
      ) AS made ON made.thread = later.thread AND later.number >= made.first)
    RETURNING message_id AS id`,
    { ...selected },
  );
  const answers = await tx.run(
    "DELETE FROM job WHERE queue = 'webhook' AND account_id = @accountId AND name = ANY (@names::text[])",
    { accountId: selected.accountId, names: turns.map(({ id }) => answerEventId(id)) },
  );
  const images = await tx.run(
    `DELETE FROM chat_image WHERE thread IN (${ofAccount}) AND token IN (
      SELECT token FROM stored_file WHERE account_id = @accountId AND released_of = ANY (@ids::text[]))`,
    { ...selected },
  );
  const unknown = await tx.get<{ readonly turns: number }>(
    `SELECT count(*) AS turns FROM chat_turn WHERE reads IS NULL AND thread IN (${ofAccount})`,
    { accountId: selected.accountId },
  );
  return { turns: turns.length, answers, images, unknownTurns: unknown?.turns ?? 0 };
}
