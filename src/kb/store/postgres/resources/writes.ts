import { KbsyncError } from "../../../../lib/failure.ts";
import type { Chunking } from "../../chunks.ts";
import type { Expected, Resource, ResourceChange, ResourceKey, ResourceStatus } from "../../resources.ts";
import { splitText } from "../../rows/parts.ts";
import { changeFacts, removalFacts } from "../../rows/webhooks.ts";
import { ingestJob } from "../../rows/job-body.ts";
import { resourceOf, settingsOf, type ResourceRow } from "../../rows/records.ts";
import { changedColumns, type TextColumns } from "../../rows/resource-columns.ts";
import type { Failure } from "../../request-note.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";
import { runSteps } from "../database/steps.ts";
import { publish } from "../queue/deliveries.ts";
import { QUEUE } from "../queue/queue.ts";
import { addMetadata, removeMetadata } from "../scopes/metadata.ts";
import { changeScope } from "../scopes/scopes.ts";
import { createOne, newDocument } from "./creates.ts";
import { encodeChunks, readContent, removeChunks, renameChunks, replaceChunks } from "./chunks.ts";
import { forgetText, noteResource } from "./request-notes.ts";
import { markDeleted, markStatus, readLocked, readWritten, releaseFile, updateRow } from "./rows.ts";

/** Writes of resources inside a transaction. Jobs are put last (ADR 15). */
export function resourceWritesOn(
  tx: Transaction,
): Pick<
  Records,
  | "createResource"
  | "enqueueCreate"
  | "updateResource"
  | "enqueueUpdate"
  | "failJob"
  | "deleteResource"
  | "purgeDeleted"
> {
  return {
    createResource: (resource, chunking, sameTransaction) =>
      createOne(tx, newDocument(resource, { chunking, request: sameTransaction?.request })),
    enqueueCreate: (resource, job, sameTransaction) =>
      createOne(tx, newDocument(resource, { job, request: sameTransaction?.request })),
    async updateResource(change, chunking, sameTransaction) {
      const before = await readLocked(tx, change);
      if (before === undefined) return undefined;
      const { job, failure, isPart = false } = sameTransaction ?? {};
      const isLeased =
        job === undefined ||
        (isPart
          ? (await runSteps(tx, QUEUE.documentOf(job))) !== undefined
          : await runSteps(tx, QUEUE.complete(job)));
      if (!isLeased)
        throw new KbsyncError("the lease of the job has ended", { code: "lease_lost", subject: change.id });
      const { written, text } = await update(tx, before, change, chunking, { isPart, failure });
      const after = resourceOf(written, text);
      if (sameTransaction?.request !== undefined) await noteResource(tx, after, sameTransaction.request);
      const noted = changeFacts(written, change.nowIso);
      const type = chunking === undefined ? "resource.updated" : "resource.chunked";
      await publish(tx, type, after, noted);
      if (failure !== undefined) await publish(tx, "resource.error", after, noted);
      return after;
    },
    async enqueueUpdate(at, job, sameTransaction) {
      const before = await readLocked(tx, at);
      if (before === undefined) return undefined;
      await markStatus(tx, before, at.nowIso);
      const after = resourceOf(await readWritten(tx, at), "");
      if (sameTransaction?.request !== undefined) await noteResource(tx, after, sameTransaction.request);
      const put = ingestJob({ ...at, ownerId: before.owner_id }, job);
      await runSteps(tx, QUEUE.putChange(put, settingsOf(before)));
      return after;
    },
    async failJob(job, failure, nowIso) {
      const at = await runSteps(tx, QUEUE.documentOf(job));
      const before = at === undefined ? undefined : await readLocked(tx, at);
      if (at === undefined || before === undefined || !(await runSteps(tx, QUEUE.complete(job)))) return;
      await markStatus(tx, before, nowIso, failure);
      const written = await readWritten(tx, at);
      await publish(tx, "resource.error", resourceOf(written, ""), changeFacts(written, nowIso));
    },
    deleteResource: (at) => removeResource(tx, at),
    // The delete is the last change of a record, so `updated_at` is its time.
    purgeDeleted: (beforeIso, limit) =>
      tx.run(
        `DELETE FROM resource WHERE (account_id, id) IN (
          SELECT account_id, id FROM resource WHERE is_deleted AND updated_at < @beforeIso LIMIT @limit
          FOR UPDATE SKIP LOCKED)`,
        { beforeIso, limit },
      ),
  };
}

/** Deletes a resource; see `Records.deleteResource`. */
export async function removeResource(
  tx: Transaction,
  at: ResourceKey & Expected & { readonly nowIso: string },
): Promise<Resource | undefined> {
  const before = await readLocked(tx, at);
  if (before === undefined) return undefined;
  const { nowIso } = at;
  const [text, words] = await Promise.all([readContent(tx, before), removeChunks(tx, before)]);
  await Promise.all([
    changeScope(tx, before.scope, {
      resources: -1,
      chunks: -before.chunks,
      words: -words,
      removed: before.chunks,
      refilters: true,
    }),
    runSteps(tx, QUEUE.removeChange(at.accountId, at.id)),
    removeMetadata(tx, before),
    releaseFile(tx, before, null, nowIso),
    markDeleted(tx, before, nowIso),
    forgetText(tx, at),
  ]);
  const revision = before.revision + 1;
  const deleted = { ...resourceOf(before, text), isDeleted: true, updatedAt: nowIso, revision };
  await publish(tx, "resource.deleted", deleted, removalFacts(before, nowIso));
  return deleted;
}

/** Writes a change of a resource. Returns its row and its text after it. */
async function update(
  tx: Transaction,
  before: ResourceRow,
  change: ResourceChange,
  chunking: Chunking | undefined,
  { isPart, failure }: { readonly isPart: boolean; readonly failure: Failure | undefined },
): Promise<{ readonly written: ResourceRow; readonly text: string }> {
  const text = change.content ?? (await readContent(tx, before));
  const columns = changedColumns(before, change, chunking, text);
  const status = isPart ? "chunked" : await statusOf(tx, change, columns.statusMessage);
  const indexed = await reindex(tx, before, columns, text, chunking);
  const [, , , written] = await Promise.all([
    updateRow(tx, change.accountId, { ...columns, status, ...indexed }),
    failure === undefined ? undefined : markStatus(tx, before, change.nowIso, failure),
    releaseFile(tx, before, columns.fileToken, change.nowIso),
    readWritten(tx, change),
  ]);
  const isDescribedAnew =
    written.metadata !== before.metadata || written.file_metadata !== before.file_metadata;
  // A new chunking has noted it already.
  const refilters = change.metadata !== undefined && chunking === undefined;
  await Promise.all([
    isDescribedAnew ? removeMetadata(tx, before) : undefined,
    isDescribedAnew ? addMetadata(tx, before.account_id, [written]) : undefined,
    refilters ? changeScope(tx, before.scope, { refilters }) : undefined,
  ]);
  return { written, text };
}

/** Writes the chunks and index entries of a changed text, title or label. */
async function reindex(
  tx: Transaction,
  before: ResourceRow,
  names: Pick<ResourceRow, "title" | "label">,
  text: string,
  chunking: Chunking | undefined,
): Promise<TextColumns> {
  if (chunking === undefined) {
    const isRenamed = names.title !== before.title || names.label !== before.label;
    const { head, version, chunks } = before;
    const firstRow = isRenamed && chunks > 0 ? await renameChunks(tx, before, names) : before.first_row;
    return { head, version, firstRow, chunks };
  }
  const { head, chunks: parts } = splitText(text, chunking.spans);
  const firstRow = await replaceChunks(tx, before, names, encodeChunks(names, parts, chunking));
  return { head, version: before.version + 1, firstRow, chunks: parts.length };
}

/** Returns the state of a resource: `queued` while a change waits, else by the message of its last failure. */
async function statusOf(
  tx: Transaction,
  { accountId, id }: ResourceKey,
  message: string | null,
): Promise<ResourceStatus> {
  if (await runSteps(tx, QUEUE.hasChange(accountId, id))) return "queued";
  return message === null ? "chunked" : "error";
}
