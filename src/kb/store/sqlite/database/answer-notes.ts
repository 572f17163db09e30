import type { RequestNote } from "../../request-note.ts";
import type { Resource, ResourceKey, StoredFile } from "../../records.ts";
import type { Connection } from "./connection.ts";

/** How long an answer to an idempotency key is kept. */
export const ANSWER_KEPT_MS = 24 * 60 * 60 * 1000;
/** Most notes kept of an account, oldest out first: some 100 MB at the worst usual size; an initial load makes one a file. */
const NOTES_MAX = 100_000;
/** Notes collected with each write: it takes out more than it brings in. */
const COLLECTED_MAX = 4;
/**
 * Longest record kept whole, in characters of JSON: those of creates and of short updates. With the bound on their number
 * all of an account stay below a gigabyte; whole records of 32 MB would fill any disk within the 24 hours.
 */
const KEPT_CHARS_MAX = 8 * 1024;

/** Notes on what requests did; each runs inside the transaction of what it notes. */
export interface AnswerNotes {
  /** The record as it is written; a long one by its id alone. */
  resource(resource: Omit<Resource, "content"> & { readonly content?: string }, request: RequestNote): void;
  file(file: StoredFile, request: RequestNote): void;
  /** A question that is answered later, by the id of its answer. */
  question(accountId: string, messageId: string, request: RequestNote): void;
  /** Leaves no text of a deleted resource: what was asked of it is answered from its id, as that it is gone. */
  forgetText(at: ResourceKey): void;
  /** Removes what is too old; answers how many. */
  sweep(this: void, argument: { readonly nowMs: number; readonly limit: number }): number;
}

/** Prepares the statements on the writing connection. */
export function prepareAnswerNotes(db: Connection, notesMax = NOTES_MAX): AnswerNotes {
  const upsert = db.prepare(`
    INSERT INTO kept_answer (account_id, key, body_sha256, status, body, text_of, kept_ms, sequence)
    VALUES (@accountId, @key, @bodySha256, @status, @body, @textOf, @nowMs, @sequence)
    ON CONFLICT (account_id, key) DO UPDATE SET sequence = excluded.sequence, body_sha256 = excluded.body_sha256, status = excluded.status,
      body = excluded.body, text_of = excluded.text_of, kept_ms = excluded.kept_ms
    WHERE kept_answer.kept_ms <= @nowMs - ${ANSWER_KEPT_MS}`);
  const selectNewest = db
    .prepare<[string], number | null>("SELECT max(sequence) FROM kept_answer WHERE account_id = ?")
    .pluck();
  const collectOld = db.prepare(`
    DELETE FROM kept_answer WHERE number IN (
      SELECT number FROM kept_answer WHERE kept_ms <= ? ORDER BY kept_ms LIMIT ?)`);
  const collectMany = db.prepare(`
    DELETE FROM kept_answer WHERE number IN (
      SELECT number FROM kept_answer WHERE account_id = ? AND sequence <= ?
      ORDER BY sequence LIMIT ${COLLECTED_MAX})`);

  const dropText = db.prepare(`
    UPDATE kept_answer SET body = json_object('resourceId', text_of), text_of = NULL
    WHERE text_of = @id AND account_id = @accountId`);

  const note = (accountId: string, body: object, request: RequestNote, textOf: string | null): void => {
    const { key, bodySha256, status, nowMs } = request;
    collectOld.run(nowMs - ANSWER_KEPT_MS, COLLECTED_MAX);
    const sequence = (selectNewest.get(accountId) ?? 0) + 1;
    const row = { accountId, key, bodySha256, status, nowMs, textOf, sequence, body: JSON.stringify(body) };
    upsert.run(row);
    // An account's sequence ascends with time, so what lies further back than the bound is too many.
    collectMany.run(accountId, sequence - notesMax);
  };

  return {
    resource: (resource, request) => {
      // A long text is not even written out to see how long it is.
      const isLong =
        (resource.content?.length ?? 0) > KEPT_CHARS_MAX || JSON.stringify(resource).length > KEPT_CHARS_MAX;
      const hasText = !isLong && resource.content !== undefined && resource.content !== "";
      const body = isLong ? { resourceId: resource.id } : { resource };
      note(resource.accountId, body, request, hasText ? resource.id : null);
    },
    file: (file, request) => note(file.accountId, { file }, request, null),
    question: (accountId, messageId, request) => note(accountId, { messageId }, request, null),
    forgetText: (at) => void dropText.run(at),
    sweep: ({ nowMs, limit }) => collectOld.run(nowMs - ANSWER_KEPT_MS, limit).changes,
  };
}
