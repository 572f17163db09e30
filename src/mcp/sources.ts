import { KbsyncError } from "../lib/failure.ts";
import type { OwnerEntry } from "../wire/owners.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles, KnownSource } from "./known-files.ts";

/** What a search can be narrowed to: one owner's part of a collection. */
export interface McpSource {
  readonly owner_id: string;
  readonly collection_id: string;
  /** The retrieval tier; null where the service does not tell. */
  readonly collection: string | null;
  /** The synced folder of this machine; null: made elsewhere. */
  readonly folder: string | null;
  /** Null where the service does not tell. */
  readonly documents: number | null;
  readonly chunks: number | null;
}

/** Sources that a search asks at once, each one request. */
export const SOURCES_SEARCHED_MAX = 32;

/** All sources of the caller, and whether there are more than are listed. Throws `sources_untold`. */
export async function listSources(
  { service, ownsLedger }: Reached,
  files: KnownFiles,
  signal: AbortSignal,
): Promise<{ readonly sources: readonly McpSource[]; readonly more: boolean }> {
  const told = await service.owners(signal);
  if (told !== undefined) {
    return { sources: told.owners.map((owner) => sourceOf(owner, files.sources)), more: told.more };
  }
  if (!ownsLedger) {
    throw new KbsyncError("the service does not tell which sources a key can read", {
      code: "sources_untold",
      hint: "Name collection_id and owner_id in the search, or the document.",
    });
  }
  const sources = files.sources.flatMap(({ folder, ownerId, collectionId }): McpSource[] =>
    collectionId === undefined
      ? []
      : [
          {
            owner_id: ownerId,
            collection_id: collectionId,
            collection: null,
            folder,
            documents: null,
            chunks: null,
          },
        ],
  );
  return { sources, more: false };
}

function sourceOf(
  { ownerId, collectionId, details, resources, chunks }: OwnerEntry,
  known: readonly KnownSource[],
): McpSource {
  // Both ids: an owner's name may be another account's as well, a collection's id never is.
  const local = known.find((source) => source.ownerId === ownerId && source.collectionId === collectionId);
  return {
    owner_id: ownerId,
    collection_id: collectionId,
    collection: details,
    folder: local?.folder ?? null,
    documents: resources,
    chunks,
  };
}

/**
 * The sources that a name and a collection mean: `name` is a folder or an owner, `collection` a tier or an id; undefined:
 * any. Throws `source_unknown`, naming those that there are, and `too_many_sources`.
 */
export function chosenSources(
  all: readonly McpSource[],
  name: string | undefined,
  collection: string | undefined,
): readonly McpSource[] {
  const chosen = all.filter(
    (source) =>
      (name === undefined || source.folder === name.replace(/(?<=.)\/+$/, "") || source.owner_id === name) &&
      (collection === undefined || source.collection === collection || source.collection_id === collection),
  );
  if (chosen.length === 0 && (name !== undefined || collection !== undefined)) {
    const some = all.slice(0, NAMED).map(({ folder, owner_id: owner }) => folder ?? owner);
    throw new KbsyncError(
      `there is no source ${name ?? "of any name"} in ${collection ?? "any collection"}`,
      {
        code: "source_unknown",
        ...(name !== undefined && { subject: name }),
        hint:
          some.length === 0
            ? "Nothing is in the knowledge base yet."
            : `There are: ${some.join(", ")}${all.length > NAMED ? ", …" : ""}. list_sources tells all.`,
      },
    );
  }
  if (chosen.length > SOURCES_SEARCHED_MAX) {
    throw new KbsyncError(`${chosen.length} sources fit; a search looks through ${SOURCES_SEARCHED_MAX}`, {
      code: "too_many_sources",
      hint: "Name a source or a collection; list_sources tells what there is.",
    });
  }
  return chosen;
}

/** Sources that an error names. */
const NAMED = 10;
