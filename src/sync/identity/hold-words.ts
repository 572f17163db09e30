import { counted } from "../../lib/counted.ts";
import type { ActionContext, ActionSource } from "../send/context.ts";
import type { Applied } from "./apply.ts";
import type { Hold } from "./compare.ts";
import type { Gathered } from "./situation.ts";

/** Says that the state folder or the documents were copied, so that another installation may still write. */
export function copiedWords({ ledger }: ActionContext, { id }: Pick<ActionSource, "id">): string {
  const { agreed } = ledger.sources.get(id);
  return `this state folder was copied or moved, or the documents were: ${counted(agreed, "document")} were written by an installation on another machine or in other folders, which may still write`;
}

/** Why a source waits whose lists differ again and again. */
export const UNCLEAR_LISTS =
  "the service's lists of its documents differ from one moment to the next, so files would be sent twice; kbsync asks again by itself";
/** Why a source waits whose first file had no answer. */
export const PROBE_UNANSWERED =
  "the service does not name its collections, and did not answer when a file was sent, so files would be sent twice; kbsync asks again by itself";
/** Why a source waits after its first file. */
export const NOT_SHOWN =
  "the service's list does not show the document that was just sent, so files would be sent twice; kbsync asks again by itself";

/** Why a source waits whose list lacks what the service has. */
export function incompleteWords({
  path,
  missing,
}: Extract<Applied, { readonly kind: "incomplete" }>): string {
  if (path === undefined)
    return `the service no longer has some documents, and its list lacks ${counted(missing, "document")} with those that it may not show yet: whether most are lost, a later list shows, and kbsync asks again by itself`;
  return `the service's list lacks ${counted(missing, "document")}, and the service has at least one of them, that of ${path}; nothing is decided by such a list, and kbsync asks again by itself`;
}

/** What a new ledger found at a service that drops descriptions. `count`: documents of its owner. */
export function unmarkedWords(count: number): string {
  return `the service does not keep descriptions as they are sent, and has ${counted(count, "document")} of this owner: whether they are those of these files is unknown`;
}

/** Names the documents that a person must decide about, and who wrote them last. */
export function holdWords({ resources }: Gathered, holds: readonly Hold[]): string {
  return holds
    .map((hold) => {
      const [docId = ""] = hold.docIds;
      if (hold.kind === "damaged-marker")
        return `the description of ${docId} ends with a damaged marker, so it may be that of any file; delete it, or the end of its description, at the service`;
      const latestMs = Math.max(...hold.docIds.map((id) => resources.get(id)?.updatedMs ?? 0));
      const when = latestMs > 0 ? `, last at ${new Date(latestMs).toISOString()}` : "";
      return `another kbsync (${hold.writer}) writes ${counted(hold.docIds.length, "document")} of this source${when}`;
    })
    .join("; ");
}
