import type { RequestNote } from "../../request-note.ts";
import type { StoredFile } from "../../files.ts";
import type { Resource, ResourceKey } from "../../resources.ts";
import {
  ANSWER_TTL_MS,
  notedBefore,
  notedResource,
  NOTES_MAX,
  REMOVED_MAX,
} from "../../rows/request-notes.ts";
import type { Connection } from "./connection.ts";

/** Notes of what requests did. Each method runs inside the transaction of the write that it notes. */
export interface AnswerNotes {
  /** Notes the record as written; a long record by its id alone. */
  resource(resource: Omit<Resource, "content"> & { readonly content?: string }, request: RequestNote): void;
  file(file: StoredFile, request: RequestNote): void;
  /** Notes a question that is answered later, by the id of its answer. */
  question(accountId: string, messageId: string, request: RequestNote): void;
  /** Removes the text of a deleted resource from its notes: a repeated request is answered from its id, as deleted. */
  forgetText(at: ResourceKey): void;
  /** Removes up to `limit` expired notes. Returns how many. */
  sweep(this: void, nowMs: number, limit: number): number;
}

/** Prepares the statements on the writing connection. */
export function prepareAnswerNotes(db: Connection, notesMax = NOTES_MAX): AnswerNotes {
  const upsert = db.prepare(`
    INSERT INTO kept_answer (account_id, key, body_sha256, status, body, text_of, kept_ms, sequence)
    VALUES (@accountId, @key, @bodySha256, @status, @body, @textOf, @nowMs, @sequence)
    ON CONFLICT (account_id, key) DO UPDATE SET sequence = excluded.sequence, body_sha256 = excluded.body_sha256, status = excluded.status,
      body = excluded.body, text_of = excluded.text_of, kept_ms = excluded.kept_ms
    WHERE kept_answer.kept_ms <= @nowMs - ${ANSWER_TTL_MS}`);
  const selectNewest = db
    .prepare<[string], number | null>("SELECT max(sequence) FROM kept_answer WHERE account_id = ?")
    .pluck();
  const removeOld = db.prepare(`
    DELETE FROM kept_answer WHERE number IN (
      SELECT number FROM kept_answer WHERE kept_ms <= ? ORDER BY kept_ms LIMIT ?)`);
  const removeExcess = db.prepare(`
    DELETE FROM kept_answer WHERE number IN (
      SELECT number FROM kept_answer WHERE account_id = ? AND sequence <= ?
      ORDER BY sequence LIMIT ${REMOVED_MAX})`);

  const dropText = db.prepare(`
    UPDATE kept_answer SET body = json_object('resourceId', text_of), text_of = NULL
    WHERE text_of = @id AND account_id = @accountId`);

  const note = (accountId: string, body: object, request: RequestNote, textOf: string | null): void => {
    const { key, bodySha256, status, nowMs } = request;
    removeOld.run(nowMs - ANSWER_TTL_MS, REMOVED_MAX);
    const sequence = (selectNewest.get(accountId) ?? 0) + 1;
    const row = { accountId, key, bodySha256, status, nowMs, textOf, sequence, body: JSON.stringify(body) };
    if (upsert.run(row).changes === 0) throw notedBefore(key);
    // An account's sequence ascends with time, so notes further back than the bound are too many.
    removeExcess.run(accountId, sequence - notesMax);
  };

  return {
    resource: (resource, request) => {
      const { body, textOf } = notedResource(resource);
      note(resource.accountId, body, request, textOf);
    },
    file: (file, request) => note(file.accountId, { file }, request, null),
    question: (accountId, messageId, request) => note(accountId, { messageId }, request, null),
    forgetText: (at) => void dropText.run(at),
    sweep: (nowMs, limit) => removeOld.run(nowMs - ANSWER_TTL_MS, limit).changes,
  };
}
