import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionContext } from "../send/context.ts";
import { readMarker, sourceTag } from "../plan/marker.ts";
import { readList } from "./list.ts";

/**
 * Returns the resources whose marker names a source, and that neither a row nor an intent of the ledger knows, in every owner and
 * collection that the source ever wrote to. Throws `list_refused`.
 */
export async function ownResources(
  context: ActionContext,
  source: number,
  signal: AbortSignal,
): Promise<readonly { readonly docId: string; readonly title: string }[]> {
  const { ledger } = context;
  const { markerId, writer } = ledger.contacts.signature(source);
  if (markerId === undefined) return [];
  const tag = sourceTag(markerId);
  const found = new Map<string, { readonly docId: string; readonly title: string }>();
  for (const scope of ledger.contacts.scopes(source)) {
    const visit = ({ _id: docId, title, description }: ResourceRecord): void => {
      const reading = readMarker(description);
      const isOurs =
        reading.kind === "whole" && reading.marker.source === tag && reading.marker.writer === writer;
      if (isOurs && !ledger.files.knows(docId)) found.set(docId, { docId, title });
    };
    await readList(context, scope, () => visit, { signal });
  }
  return [...found.values()];
}
