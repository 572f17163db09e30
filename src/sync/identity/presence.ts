import type { ActionContext } from "../send/context.ts";
import { isReplacedBy, judgeGone } from "../send/gone.ts";
import type { AnsweredRecord } from "../send/remote/resource-requests.ts";
import { fileTag, readMarker } from "../plan/marker.ts";
import type { RelativePath } from "../plan/model.ts";

/** Failed queries for one resource before the service counts as failing on it alone. */
const ASK_TRIES = 3;

/** A resource of a file's row. */
export interface OwnedResource {
  readonly docId: string;
  readonly title: string;
  readonly path: RelativePath;
}

/** The service's answer about one resource. `unanswered`: neither that it has it nor that it has not. */
export type Presence = "there" | "gone" | "unanswered";

/**
 * Queries a resource: by its own record where the service shows one, otherwise by a change that changes nothing. A 404
 * is believed when it is repeated.
 */
export async function askPresence(
  context: ActionContext,
  resource: OwnedResource,
  signal: AbortSignal,
): Promise<Presence> {
  const reply = await context.remote.read(resource.docId, signal);
  const isDeleted = reply.kind === "done" ? reply.value.isDeleted : undefined;
  if (isDeleted !== undefined) return isDeleted ? "gone" : "there";
  for (let answers = 1; ; answers += 1) {
    const presence = await askTitle(context, resource, signal);
    if (presence !== "gone") return presence;
    const word = await judgeGone(context, resource.docId, answers);
    if (word !== "again") return typeof word === "string" ? "gone" : "unanswered";
  }
}

/** Resources that are asked for before a list is believed that lacks them, spread evenly from first to last. */
const SAMPLE_MAX = 10;

/** Returns at most so many items, spread evenly from first to last. Default: as many resources as are asked for. */
export function sampleOf<T>(items: readonly T[], max: number = SAMPLE_MAX): readonly T[] {
  const step = Math.max(1, Math.ceil(items.length / max));
  return items.filter((_, index) => index % step === 0);
}

/** Asks for resources that a list lacks. Returns one that is not gone: then the list decides nothing. */
export async function findThere(
  context: ActionContext,
  resources: readonly OwnedResource[],
  signal: AbortSignal,
): Promise<OwnedResource | undefined> {
  const [first, ...others] = resources;
  // A service that does not answer for one proves nothing either. Of most lists that lack some the first shows that.
  if (first !== undefined && (await askPresence(context, first, signal)) !== "gone") return first;
  const answers = await Promise.all(others.map(async (each) => await askPresence(context, each, signal)));
  return others.find((_, index) => answers[index] !== "gone");
}

/**
 * Queries a resource by sending it the title of its file. The title as listed may be another one: a service that cuts
 * titles would store a shorter one each time.
 */
async function askTitle(
  context: ActionContext,
  resource: OwnedResource,
  signal: AbortSignal,
): Promise<Presence> {
  const { docId, title } = resource;
  for (let tries = 1; ;) {
    const reply = await context.remote.update(docId, { title }, signal);
    if (reply.kind === "done") {
      await followAnswer(context, resource, reply.value.record, signal);
      return "there";
    }
    if (reply.kind === "gone") return "gone";
    if (reply.kind === "refused" || reply.isPaused === true) return "unanswered";
    // The gate has waited. A service that fails on this one alone must not block the audit for ever.
    if (reply.blame === "request" && (tries += 1) > ASK_TRIES) return "unanswered";
  }
}

/** Follows an answer that names another resource, which took the place of the one that was asked for and has the file's marker. */
async function followAnswer(
  context: ActionContext,
  resource: OwnedResource,
  { _id: answered, description }: AnsweredRecord,
  signal: AbortSignal,
): Promise<void> {
  const { docId, path } = resource;
  if (answered === undefined || answered === docId) return;
  const reading = readMarker(description);
  if (reading.kind !== "whole" || reading.marker.file !== fileTag(path)) return;
  if (!(await isReplacedBy(context, resource, answered, signal))) return;
  await context.ledger.write(() => context.ledger.files.follow(answered, docId));
}
