import { jobKey } from "../queue/waits.ts";
import type { Expected, Resource, ResourceKey } from "../store/resources.ts";
import { refuseUnexpected, type RequestContext } from "./request-context.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noResource } from "./refusal.ts";

/**
 * Operation 5, a soft delete. Returns the deleted record; the chunks, vectors and waiting jobs of the resource are removed. A second
 * delete finds nothing. A delete does not wait for a change in progress, which may read a document for minutes: a change written
 * before the delete is deleted too, and a change written after it finds no resource and is dropped.
 */
export async function removeResource(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
  context: RequestContext = {},
): Promise<Resource> {
  let expected: Expected = {};
  if (context.precondition !== undefined || context.makeRoom !== undefined) {
    const before = await kb.records.resource({ accountId, id });
    if (before === undefined) throw noResource(id);
    expected = refuseUnexpected(context, before);
    context.makeRoom?.(before);
  }
  const deleted = await kb.records.deleteResource({ accountId, id, nowIso: nowIso(kb), ...expected });
  if (deleted === undefined) throw noResource(id);
  endWaits(kb, { accountId, id });
  return deleted;
}

/** Answers the requests that wait for a queued change of a deleted resource. */
export function endWaits({ jobWaits, notices }: KnowledgeBase, deleted: ResourceKey): void {
  const key = jobKey(deleted);
  jobWaits.notify(key);
  notices?.announce("ended", key);
}
