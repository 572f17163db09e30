import { KbsyncError } from "../lib/failure.ts";
import { OWNERS_MAX, type OwnerEntry } from "../wire/owners.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles, KnownSource } from "./known-files.ts";
import { pageOf, type PageRequest } from "./service.ts";

/** A unit of search: one owner's part of a collection. */
export interface McpSource {
  readonly owner_id: string;
  readonly collection_id: string;
  /** The retrieval tier; null if the service does not report it. */
  readonly collection: string | null;
  /** The synced folder of this machine; null for another origin. */
  readonly folder: string | null;
  /** Null if the service does not report it. */
  readonly documents: number | null;
  readonly chunks: number | null;
}

/** Sources per search; each takes one request. */
export const SOURCES_SEARCHED_MAX = 32;

/** Pages searched for matching sources, each with up to a thousand: 20,000 at a kbsync. */
const PAGES_MAX = 20;

/** A page of sources. */
export interface SourcesPage {
  readonly sources: readonly McpSource[];
  /** Start of the next page; null on the last one. */
  readonly nextCursor: string | null;
}

/**
 * Finds the sources that a name means, a folder or an owner, page by page; without a name, all. Throws `source_unknown` with some
 * existing sources, `too_many_sources` and `sources_untold`.
 */
export async function findSources(
  reached: Reached,
  files: KnownFiles,
  name: string | undefined,
  signal: AbortSignal,
): Promise<readonly McpSource[]> {
  const chosen: McpSource[] = [];
  const some: McpSource[] = [];
  let seen = 0;
  let cursor: string | undefined;
  let isLast = false;
  for (let pages = 0; pages < PAGES_MAX && !isLast; pages++) {
    const page = await listSources(reached, files, { limit: OWNERS_MAX, cursor }, signal);
    cursor = page.nextCursor ?? undefined;
    isLast = page.nextCursor === null;
    seen += page.sources.length;
    some.push(...page.sources.slice(0, NAMED - some.length));
    chosen.push(
      ...page.sources.filter((one) => name === undefined || isFolder(one, name) || one.owner_id === name),
    );
    if (chosen.length > SOURCES_SEARCHED_MAX) throw tooMany(chosen.length, !isLast);
    // A folder has one source, and an owner several.
    if (name !== undefined && chosen.some((one) => isFolder(one, name))) break;
  }
  if (chosen.length > 0 || name === undefined) return chosen;
  throw unknownSource(name, some, seen, !isLast);
}

/** Lists a page of the sources of the caller. Throws `sources_untold`. */
export async function listSources(
  { service, ownsLedger }: Reached,
  files: KnownFiles,
  request: PageRequest,
  signal: AbortSignal,
): Promise<SourcesPage> {
  const page = await service.owners(signal, request);
  if (page !== undefined) {
    const sources = page.owners.map((owner) => sourceOf(owner, files.sources));
    return { sources, nextCursor: page.nextCursor };
  }
  if (!ownsLedger) {
    throw new KbsyncError("the service does not list the sources that a key can read", {
      code: "sources_untold",
      hint: "Name a document by its id, or use the key that this machine's folders are synced with.",
    });
  }
  const sources = files.sources.flatMap(({ folder, ownerId, collectionId }): McpSource[] => {
    if (collectionId === undefined) return [];
    const unknown = { collection: null, documents: null, chunks: null };
    return [{ owner_id: ownerId, collection_id: collectionId, folder, ...unknown }];
  });
  const { entries, nextCursor } = pageOf(sources, request);
  return { sources: entries, nextCursor };
}

function sourceOf(
  { ownerId, collectionId, details, resources, chunks }: OwnerEntry,
  known: readonly KnownSource[],
): McpSource {
  // Compares both ids: accounts may share an owner's name, but never a collection's id.
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

function isFolder({ folder }: McpSource, name: string): boolean {
  return folder === name.replace(/(?<=.)\/+$/, "");
}

function tooMany(count: number, atLeast: boolean): KbsyncError {
  const fit = atLeast ? `${count} sources or more fit` : `${count} sources fit`;
  return new KbsyncError(`${fit}; a search looks through ${SOURCES_SEARCHED_MAX}`, {
    code: "too_many_sources",
    hint: "Name a source; list_sources lists them.",
  });
}

function unknownSource(name: string, some: readonly McpSource[], seen: number, more: boolean): KbsyncError {
  const among = more ? ` among the first ${seen} of them, and no more are read` : "";
  const names = some.map(({ folder, owner_id: owner }) => folder ?? owner).join(", ");
  return new KbsyncError(`there is no source ${name}${among}`, {
    code: "source_unknown",
    subject: name,
    hint:
      some.length === 0
        ? "Nothing is in the knowledge base yet."
        : `There are: ${names}${seen > some.length ? ", …" : ""}. list_sources lists them, a page at a time.`,
  });
}

/** Sources that an error lists. */
const NAMED = 10;
