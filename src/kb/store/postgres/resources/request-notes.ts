import type { AcceptedBatch } from "../../batches.ts";
import type { StoredFile } from "../../files.ts";
import type { Resource, ResourceKey } from "../../resources.ts";
import type { RequestNote, StoredAnswer } from "../../request-note.ts";
import {
  ANSWER_TTL_MS,
  notedBefore,
  notedResource,
  NOTES_MAX,
  REMOVED_MAX,
} from "../../rows/request-notes.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";

/** The subject of a note. */
interface Noted {
  readonly accountId: string;
  readonly body: object;
  /** The resource whose text is in the body. */
  readonly textOf?: string | null;
  /** Id of the resource that is in the body, or token of the file. */
  readonly about?: string;
}

/** Notes of requests inside a transaction. */
export function requestNotesOn(tx: Transaction): Pick<Records, "recall" | "sweepAnswers"> {
  return {
    recall: (accountId, key, nowMs) =>
      tx.get<StoredAnswer>(
        `SELECT body_sha256 AS "bodySha256", status, body FROM kept_answer
        WHERE account_id = @accountId AND key = @key AND kept_ms > @fromMs`,
        { accountId, key, fromMs: nowMs - ANSWER_TTL_MS },
      ),
    sweepAnswers: (nowMs, limit) => sweep(tx, nowMs, limit),
  };
}

/** Notes the record as written; a long record by its id alone. */
export async function noteResource(
  tx: Transaction,
  resource: Omit<Resource, "content"> & { readonly content?: string },
  request: RequestNote,
): Promise<void> {
  const { accountId, id } = resource;
  await note(tx, { accountId, about: id, ...notedResource(resource) }, request);
}

/** Notes an upload. */
export async function noteFile(tx: Transaction, file: StoredFile, request: RequestNote): Promise<void> {
  await note(tx, { accountId: file.accountId, body: { file }, about: file.token }, request);
}

/** Notes a batch as it was accepted. */
export async function noteBatch(
  tx: Transaction,
  accountId: string,
  batch: AcceptedBatch,
  request: RequestNote,
): Promise<void> {
  await note(tx, { accountId, body: { batch } }, request);
}

/** Notes a question that is answered later, by the id of its answer. */
export async function noteQuestion(
  tx: Transaction,
  accountId: string,
  messageId: string,
  request: RequestNote,
): Promise<void> {
  await note(tx, { accountId, body: { messageId } }, request);
}

/** Removes the text of a deleted resource from its notes: a repeated request is answered from its id, as deleted. */
export async function forgetText(tx: Transaction, { accountId, id }: ResourceKey): Promise<void> {
  await tx.run(
    `UPDATE kept_answer SET body = json_build_object('resourceId', text_of)::text, text_of = NULL
    WHERE account_id = @accountId AND about = @id AND text_of = @id`,
    { accountId, id },
  );
}

async function note(
  tx: Transaction,
  { accountId, body, textOf = null, about }: Noted,
  { key, bodySha256, status, nowMs }: RequestNote,
): Promise<void> {
  await sweep(tx, nowMs, REMOVED_MAX);
  // Of two requests with one key, the second waits here for the first.
  const made = await tx.get<{ sequence: number }>(
    `INSERT INTO kept_answer (account_id, key, body_sha256, status, body, text_of, about, kept_ms, sequence)
    VALUES (@accountId, @key, @bodySha256, @status, @body, @textOf, @about, @nowMs,
      (SELECT coalesce(max(sequence), 0) + 1 FROM kept_answer WHERE account_id = @accountId))
    ON CONFLICT (account_id, key) DO UPDATE SET sequence = excluded.sequence, body_sha256 = excluded.body_sha256,
      status = excluded.status, body = excluded.body, text_of = excluded.text_of, about = excluded.about,
      kept_ms = excluded.kept_ms
    WHERE kept_answer.kept_ms <= @nowMs::bigint - ${ANSWER_TTL_MS}
    RETURNING sequence`,
    { accountId, key, bodySha256, status, nowMs, textOf, about, body: JSON.stringify(body) },
  );
  if (made === undefined) throw notedBefore(key);
  // An account's sequence ascends with time, so notes further back than the bound are too many.
  await tx.run(
    `DELETE FROM kept_answer WHERE account_id = @accountId AND key IN (
      SELECT key FROM kept_answer WHERE account_id = @accountId AND sequence <= @to
      ORDER BY sequence LIMIT ${REMOVED_MAX})`,
    { accountId, to: made.sequence - NOTES_MAX },
  );
}

/** A note that another transaction is removing is left to it. */
function sweep(tx: Transaction, nowMs: number, limit: number): Promise<number> {
  return tx.run(
    `DELETE FROM kept_answer WHERE (account_id, key) IN (
      SELECT account_id, key FROM kept_answer WHERE kept_ms <= @toMs ORDER BY kept_ms LIMIT @limit
      FOR UPDATE SKIP LOCKED)`,
    { toMs: nowMs - ANSWER_TTL_MS, limit },
  );
}
