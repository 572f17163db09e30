import type { ActionContext } from "../send/context.ts";
import { judgeGone } from "../send/gone.ts";

/** Failed queries for one resource before the service counts as failing on it alone. */
const ASK_TRIES = 3;

/** The service's answer about one resource. `unanswered`: neither that it has it nor that it has not. */
export type Presence = "there" | "gone" | "unanswered";

/**
 * Queries a resource: by its own record where the service shows one, otherwise by a change that changes nothing. A 404
 * is believed when it is repeated.
 */
export async function askPresence(
  context: ActionContext,
  resource: { readonly docId: string; readonly title: string },
  signal: AbortSignal,
): Promise<Presence> {
  const reply = await context.remote.read(resource.docId, signal);
  if (reply.kind === "done") return reply.value.isDeleted ? "gone" : "there";
  for (let answers = 1; ; answers += 1) {
    const presence = await askTitle(context, resource, signal);
    if (presence !== "gone") return presence;
    const word = await judgeGone(context, resource.docId, answers);
    if (word !== "again") return typeof word === "string" ? "gone" : "unanswered";
  }
}

/**
 * Queries a resource by sending it the title of its file. The title as listed may be another one: a service that cuts
 * titles would store a shorter one each time.
 */
export async function askTitle(
  { remote }: ActionContext,
  { docId, title }: { readonly docId: string; readonly title: string },
  signal: AbortSignal,
): Promise<Presence> {
  for (let tries = 1; ;) {
    const reply = await remote.update(docId, { title }, signal);
    if (reply.kind === "done") return "there";
    if (reply.kind === "gone") return "gone";
    if (reply.kind === "refused" || reply.isPaused === true) return "unanswered";
    // The gate has waited. A service that fails on this one alone must not block the audit for ever.
    if (reply.blame === "request" && (tries += 1) > ASK_TRIES) return "unanswered";
  }
}
