import type { Expected, Resource } from "../store/records.ts";
import { refuseUnexpected, type RequestContext } from "./request-context.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noResource } from "./refusal.ts";

/**
 * Operation 5, a soft delete: answers the record as deleted; its chunks and vectors are gone, and so are the jobs that
 * waited for it. A second time: not found. It waits for no change under way, which may read a document for minutes: one
 * that is written before is deleted with the rest, one that would come after finds no resource and is dropped.
 */
export async function removeResource(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
  context: RequestContext = {},
): Promise<Resource> {
  let expected: Expected = {};
  if (context.precondition !== undefined || context.makeRoom !== undefined) {
    const before = await kb.store.resource({ accountId, id });
    if (before === undefined) throw noResource(id);
    expected = refuseUnexpected(context, before);
    context.makeRoom?.(before);
  }
  const deleted = await kb.store.deleteResource({ accountId, id, nowIso: nowIso(kb), ...expected });
  if (deleted === undefined) throw noResource(id);
  return deleted;
}
