import type { Resource } from "../store/records.ts";
import { jobKey } from "../queue/completions.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { noResource } from "../resources/refusal.ts";

/**
 * A queued resource as it is when its jobs are done, or after `waitMs`, whichever comes first. Throws
 * `resource_not_found` for one that was deleted meanwhile.
 */
export async function afterJobs(kb: KnowledgeBase, queued: Resource, waitMs: number): Promise<Resource> {
  const { accountId, id } = queued;
  const endMs = performance.now() + waitMs;
  let resource = queued;
  while (resource.status === "queued" && performance.now() < endMs && !kb.isEnding()) {
    // Listened for before the state is read: a job that ends in between is told by either.
    const listening = kb.jobCompletions.listen(jobKey(queued), endMs - performance.now());
    try {
      const now = await kb.store.resource({ accountId, id });
      if (now === undefined) throw noResource(id);
      resource = now;
      if (resource.status === "queued") await listening.ended;
    } finally {
      listening.stop();
    }
  }
  return resource;
}
