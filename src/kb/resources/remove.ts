import { setTimeout as sleep } from "node:timers/promises";
import type { Expected, Resource, ResourceKey } from "../store/resources.ts";
import { refuseUnexpected, type RequestContext } from "./request-context.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { endJob } from "./new-job.ts";
import { noResource } from "./refusal.ts";

/**
 * Operation 5, a soft delete. Returns the deleted record; the chunks, vectors and waiting jobs of the resource are removed. A second
 * delete finds nothing. A delete does not wait for a change in progress, and stops a queued one, which may read a document for minutes: a
 * change written before the delete is deleted too, and a change written after it finds no resource and is dropped.
 */
export async function removeResource(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
  context: RequestContext = {},
): Promise<Resource> {
  const deleted = await removeLive(kb, { accountId, id }, context);
  if (deleted === undefined) throw noResource(id);
  return deleted;
}

/**
 * Deletes a resource, or takes a deleted one, and removes its text for good, with everything that was made from it (an addition).
 * Resolves when nothing of it is left in the store's files and among the uploads, but for a file that something else uses. A
 * repetition after a crash completes it, even if the resource is not found any more.
 */
export async function purgeResource(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
  context: RequestContext = {},
): Promise<Resource> {
  const at = { accountId, id };
  const deleted = (await removeLive(kb, at, context)) ?? (await kb.records.deletedResource(at));
  // A change that was in progress ends without a resource, but may have noted its request or the fetch of its link.
  await kb.turns.run(`${accountId}/${id}`, async () => undefined);
  await kb.records.eraseResource(at);
  for (const token of await kb.records.filesToErase(at)) await eraseFile(kb, token);
  await kb.scrub(accountId);
  if (deleted === undefined) throw noResource(id);
  return deleted;
}

/** How often the removal of a file that is being read is tried again, and after how long. */
const FILE_TRIES = 20;
const FILE_RETRY_MS = 100;

async function eraseFile(kb: KnowledgeBase, token: string): Promise<void> {
  for (let tries = 0; tries < FILE_TRIES; tries++) {
    if (await kb.files.remove(token, () => kb.records.eraseFile(token))) return;
    await sleep(FILE_RETRY_MS);
  }
}

async function removeLive(
  kb: KnowledgeBase,
  at: ResourceKey,
  context: RequestContext,
): Promise<Resource | undefined> {
  let expected: Expected = {};
  if (context.precondition !== undefined || context.makeRoom !== undefined) {
    const before = await kb.records.resource(at);
    if (before === undefined) return undefined;
    expected = refuseUnexpected(context, before);
    context.makeRoom?.(before);
  }
  const deleted = await kb.records.deleteResource({ ...at, nowIso: nowIso(kb), ...expected });
  if (deleted !== undefined) endJob(kb, at);
  return deleted;
}
