import type { Resource } from "../store/store.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noResource } from "./refusal.ts";

/** Operation 5, a soft delete: answers the record as deleted; its chunks and vectors are gone. A second time: not found. */
export function removeResource(kb: KnowledgeBase, accountId: string, id: string): Promise<Resource> {
  return kb.turns.run(`${accountId}/${id}`, async () => {
    const deleted = await kb.store.deleteResource({ accountId, id, nowIso: nowIso(kb) });
    if (deleted === undefined) throw noResource(id);
    return deleted;
  });
}
