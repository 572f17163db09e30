import type { Resource } from "../store/resources.ts";
import { noteOf, refuseUnexpected, type UpdateRequest } from "../resources/request-context.ts";
import { fileTokenOf, usingFile } from "../resources/file-token.ts";
import { finishJobs } from "./job.ts";
import { nowIso } from "../resources/knowledge-base.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { endJob, newJob } from "../resources/new-job.ts";
import { noResource } from "../resources/refusal.ts";
import { applyUpdate, refuseUpdate } from "../resources/update.ts";

/**
 * Operation 4. Resolves when the new state is searchable and durable; readers see the old version until then. Updates of one
 * resource run one after another, including queued ones that were answered before.
 */
export function updateResource(
  kb: KnowledgeBase,
  { accountId, id, body, context }: UpdateRequest,
): Promise<Resource> {
  const change = async (): Promise<Resource> => {
    await finishJobs(kb, { accountId, id });
    return applyUpdate(kb, { accountId, id }, body, noteOf(context, 200, kb.nowMs()), context);
  };
  return usingFile(kb, body.url, () => kb.turns.run(`${accountId}/${id}`, change));
}

/**
 * Operation 4 as a background job. Checks what it can without reading the document, then queues the change. Readers see the
 * old version until the job completes, and keep it if the job fails. Of a PDF whose pages are recognised, they see the other pages of the
 * new version earlier (`partText`), and keep these. Throws `queue_full`.
 */
export async function queueUpdate(
  kb: KnowledgeBase,
  { accountId, id, body, context }: UpdateRequest,
): Promise<Resource> {
  // Does not take the resource's turn, which a job may hold for minutes. The write itself detects an unexpected state.
  const before = await kb.records.resource({ accountId, id });
  if (before === undefined) throw noResource(id);
  const expected = refuseUnexpected(context, before);
  context.makeRoom?.(before);
  const queued = await usingFile(kb, body.url, async () => {
    await refuseUpdate(kb, before, body);
    return kb.records.enqueueUpdate(
      { accountId, id, nowIso: nowIso(kb), ...expected },
      newJob(kb, { update: body }, fileTokenOf(kb, body.url)),
      noteOf(context, 202, kb.nowMs()),
    );
  });
  if (queued === undefined) throw noResource(id);
  endJob(kb, { accountId, id });
  return queued;
}
