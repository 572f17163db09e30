import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "./remote/answer.ts";
import type { ActionContext } from "./context.ts";

/**
 * Decides whether a resource is gone after the `answers`-th 404 (from 1) to the same request. Other files are sent while it
 * waits.
 *
 * - `again`: the 404 may be false. Send the request again.
 * - `gone`: it is believed. If it was false nevertheless, a later list shows the resource, and what was decided is undone: a
 *   second resource of a file and a tombstone are deleted.
 * - a `Later`: the service reports that the resource exists, and does not let it be changed.
 */
export async function judgeGone(
  { remote, yieldSlot, signal, timing }: Pick<ActionContext, "remote" | "yieldSlot" | "signal" | "timing">,
  docId: string,
  answers: number,
): Promise<"gone" | "again" | Later> {
  const reply = await remote.read(docId, signal);
  const isDeleted = reply.kind === "done" ? reply.value.isDeleted : undefined;
  if (isDeleted === true) return "gone";
  const waitMs = timing.goneAgainMs[answers - 1];
  // A 404 to the record proves nothing: a service need not have such an address. Nor does one that may be a deleted resource's.
  if (waitMs === undefined) return isDeleted === false ? CONTRADICTION : "gone";
  await yieldSlot(() => sleep(waitMs, undefined, { signal }));
  return "again";
}

const CONTRADICTION: Later = {
  kind: "later",
  acted: "no",
  blame: "request",
  reason: "the service shows the resource, but answers 404 when it is changed",
};

/**
 * Reports whether another resource, which an answer names, took the place of the one that was asked for. Only then does that one
 * answer 404: a service may answer with one id for all. No other file may have it.
 */
export async function isReplacedBy(
  { ledger, remote }: Pick<ActionContext, "ledger" | "remote">,
  { docId, title }: { readonly docId: string; readonly title: string },
  answered: string,
  signal: AbortSignal,
): Promise<boolean> {
  ledger.flush();
  if (ledger.files.ownsDoc(answered)) return false;
  return (await remote.update(docId, { title }, signal)).kind === "gone";
}
