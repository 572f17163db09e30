import type { Resource } from "../store/resources.ts";
import { jobKey } from "../queue/waits.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { isUnderWay } from "../resources/quick.ts";
import { noResource } from "../resources/refusal.ts";

/**
 * Waits until the jobs of a queued resource are done, at most `waitMs`, and returns the resource as it is then. Throws
 * `resource_not_found` if it was deleted meanwhile.
 */
export async function waitForJobs(kb: KnowledgeBase, queued: Resource, waitMs: number): Promise<Resource> {
  const { accountId, id } = queued;
  const endMs = performance.now() + waitMs;
  let resource = queued;
  while (isUnderWay(resource) && performance.now() < endMs && !kb.isEnding()) {
    // Listens before it reads the state: a job that ends in between shows in one or the other.
    const listening = kb.jobWaits.listen(jobKey(queued), endMs - performance.now());
    try {
      const current = await kb.records.resource({ accountId, id });
      if (current === undefined) throw noResource(id);
      resource = current;
      if (isUnderWay(resource)) await listening.ended;
    } finally {
      listening.stop();
    }
  }
  return resource;
}
