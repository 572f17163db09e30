import { newHexId } from "../../lib/ids.ts";
import {
  BATCH_FAILURES_SHOWN,
  type Batch,
  type BatchBody,
  type BatchesAnswer,
  type BatchReadAnswer,
} from "../../wire/batch.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { Refusal, shown } from "../resources/refusal.ts";
import { noteOf, type RequestContext } from "../resources/request-context.ts";
import type { AcceptedBatch, StoredBatch } from "../store/batches.ts";

/** Batches of an account that work at a time. */
const OPEN_MAX = 4;
/** Batches of an account that ended and can still be read. */
const KEPT_MAX = 10;

/** Stores a batch, which the runner then works on. Throws `too_many_batches`. */
export async function createBatch(
  kb: KnowledgeBase,
  accountId: string,
  { kind, ids }: BatchBody,
  context: RequestContext,
): Promise<Batch> {
  const id = newHexId(kb.nowMs());
  const createdAt = nowIso(kb);
  const resourceIds = [...new Set(ids)];
  await kb.records.addBatch(
    { accountId, id, kind, resourceIds, nowIso: createdAt, openMax: OPEN_MAX, keptMax: KEPT_MAX },
    noteOf(context, 202, kb.nowMs()),
  );
  return acceptedBatch({ id, kind, total: resourceIds.length, createdAt });
}

/** Returns a batch as it was before its first document. */
export function acceptedBatch(batch: AcceptedBatch): Batch {
  return recordOf({
    ...batch,
    isStopped: false,
    pending: batch.total,
    failed: 0,
    updatedAt: batch.createdAt,
  });
}

/** Returns the batches of an account. */
export async function listBatches(kb: KnowledgeBase, accountId: string): Promise<BatchesAnswer["data"]> {
  return { batches: (await kb.records.batches(accountId)).map(recordOf) };
}

/** Returns a batch with its first failures. Throws `batch_not_found`. */
export async function readBatch(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
): Promise<BatchReadAnswer["data"]> {
  const batch = await readOne(kb, accountId, id);
  const failures = await kb.records.batchFailures({ accountId, id, limit: BATCH_FAILURES_SHOWN });
  return {
    ...batch,
    failures: failures.map(({ resourceId: _id, title, code, message }) => ({ _id, title, code, message })),
  };
}

/** Stops a batch; documents that are being worked on are completed. Throws `batch_not_found`. */
export async function stopBatch(kb: KnowledgeBase, accountId: string, id: string): Promise<Batch> {
  if (!(await kb.records.stopBatch({ accountId, id, nowIso: nowIso(kb) }))) throw noBatch(id);
  return readOne(kb, accountId, id);
}

async function readOne({ records }: KnowledgeBase, accountId: string, id: string): Promise<Batch> {
  const batch = await records.batch({ accountId, id });
  if (batch === undefined) throw noBatch(id);
  return recordOf(batch);
}

function recordOf({ id, kind, isStopped, total, pending, failed, createdAt, updatedAt }: StoredBatch): Batch {
  const state = pending === 0 ? "done" : isStopped ? "stopped" : "working";
  return { _id: id, kind, state, total, done: total - pending, failed, createdAt, updatedAt };
}

function noBatch(id: string): Refusal {
  return new Refusal("batch_not_found", `There is no batch ${shown(id)} for this key.`, {
    hint: "GET /v1/batches lists the batches of the account. Only the last ones that ended are kept.",
  });
}
