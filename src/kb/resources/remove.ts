import type { Resource } from "../store/store.ts";
import { refuseUnexpected, type Asked } from "./asked.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noResource } from "./refusal.ts";

/**
 * Operation 5, a soft delete: answers the record as deleted; its chunks and vectors are gone, and so are the jobs that
 * waited for it. A second time: not found.
 */
export function removeResource(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
  asked: Asked = {},
): Promise<Resource> {
  return kb.turns.run(`${accountId}/${id}`, async () => {
    if (asked.precondition !== undefined) {
      const before = await kb.store.resource({ accountId, id });
      if (before === undefined) throw noResource(id);
      refuseUnexpected(asked, before);
    }
    const deleted = await kb.store.deleteResource({ accountId, id, nowIso: nowIso(kb) });
    if (deleted === undefined) throw noResource(id);
    return deleted;
  });
}
