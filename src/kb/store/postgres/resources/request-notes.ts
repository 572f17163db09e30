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

/** A note that is not written yet. */
interface NewNote {
  readonly request: RequestNote;
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
  resource: NotedResource,
  request: RequestNote,
): Promise<void> {
  await noteResources(tx, resource.accountId, [{ resource, request }]);
}

/** Notes records of an account as written, each of its own request. */
export async function noteResources(
  tx: Transaction,
  accountId: string,
  notes: readonly { readonly resource: NotedResource; readonly request: RequestNote }[],
): Promise<void> {
  await writeNotes(
    tx,
    accountId,
    notes.map(({ resource, request }) => ({ request, about: resource.id, ...notedResource(resource) })),
  );
}

/** A resource, without its text if the text is not part of the answer. */
export type NotedResource = Omit<Resource, "content"> & { readonly content?: string };

/** Notes an upload. */
export async function noteFile(tx: Transaction, file: StoredFile, request: RequestNote): Promise<void> {
  await writeNotes(tx, file.accountId, [{ request, body: { file }, about: file.token }]);
}

/** Notes a question that is answered later, by the id of its answer. */
export async function noteQuestion(
  tx: Transaction,
  accountId: string,
  messageId: string,
  request: RequestNote,
): Promise<void> {
  await writeNotes(tx, accountId, [{ request, body: { messageId } }]);
}

/** Removes the text of a deleted resource from its notes: a repeated request is answered from its id, as deleted. */
export async function forgetText(tx: Transaction, { accountId, id }: ResourceKey): Promise<void> {
  await tx.run(
    `UPDATE kept_answer SET body = json_build_object('resourceId', text_of)::text, text_of = NULL
    WHERE account_id = @accountId AND about = @id AND text_of = @id`,
    { accountId, id },
  );
}

/** Writes notes, in the order of their keys, so that of two groups with some keys in common neither waits for the other. */
async function writeNotes(tx: Transaction, accountId: string, unordered: readonly NewNote[]): Promise<void> {
  if (unordered.length === 0) return;
  const notes = unordered.toSorted((a, b) => (a.request.key < b.request.key ? -1 : 1));
  const limit = REMOVED_MAX * notes.length;
  const [, made] = await Promise.all([
    sweep(tx, Math.max(...notes.map(({ request }) => request.nowMs)), limit),
    // The second of two requests with one key waits here for the first.
    tx.all<{ key: string }>(
      `INSERT INTO kept_answer (account_id, key, body_sha256, status, body, text_of, about, kept_ms, sequence)
      SELECT @accountId, key, body_sha256, status, body, text_of, about, kept_ms,
        (SELECT coalesce(max(sequence), 0) FROM kept_answer WHERE account_id = @accountId) + nth
      FROM unnest(@keys::text[], @hashes::text[], @statuses::int[], @bodies::text[], @textsOf::text[], @abouts::text[], @times::bigint[])
        WITH ORDINALITY AS new (key, body_sha256, status, body, text_of, about, kept_ms, nth)
      ORDER BY nth
      ON CONFLICT (account_id, key) DO UPDATE SET sequence = excluded.sequence, body_sha256 = excluded.body_sha256,
        status = excluded.status, body = excluded.body, text_of = excluded.text_of, about = excluded.about,
        kept_ms = excluded.kept_ms
      WHERE kept_answer.kept_ms <= excluded.kept_ms - ${ANSWER_TTL_MS}
      RETURNING key`,
      {
        accountId,
        keys: notes.map(({ request }) => request.key),
        hashes: notes.map(({ request }) => request.bodySha256),
        statuses: notes.map(({ request }) => request.status),
        bodies: notes.map(({ body }) => JSON.stringify(body)),
        textsOf: notes.map(({ textOf }) => textOf ?? null),
        abouts: notes.map(({ about }) => about ?? null),
        times: notes.map(({ request }) => request.nowMs),
      },
    ),
    // An account's sequence ascends with time, so notes further back than the bound are too many.
    tx.run(
      `DELETE FROM kept_answer WHERE account_id = @accountId AND key IN (
        SELECT key FROM kept_answer WHERE account_id = @accountId AND sequence <= (
          SELECT max(sequence) FROM kept_answer WHERE account_id = @accountId) - ${NOTES_MAX}
        ORDER BY sequence LIMIT @limit FOR UPDATE SKIP LOCKED)`,
      { accountId, limit },
    ),
  ]);
  const written = new Set(made.map(({ key }) => key));
  const known = notes.find(({ request }) => !written.has(request.key));
  if (known !== undefined) throw notedBefore(known.request.key);
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
