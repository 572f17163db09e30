import { useEffect, useState } from "preact/hooks";
import type { LiveStatus } from "../../wire/daemon.ts";
import type { OwnerEntry, OwnersAnswer } from "../../wire/owners.ts";
import type { ListAnswer } from "../../wire/resource.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { me } from "../client/session.ts";
import { listed } from "./listed-document.ts";
import type { ListedDocument } from "./listed-document.ts";

/** One owner's part of a collection. */
export type Scope = Pick<OwnerEntry, "collectionId" | "ownerId">;

/** Loads every owner of the account, in pages. */
export async function loadOwners(signal?: AbortSignal): Promise<readonly OwnerEntry[]> {
  const owners: OwnerEntry[] = [];
  let cursor: string | undefined;
  do {
    const { data } = await ask<OwnersAnswer>(ROUTES.owners, { query: { limit: 1000, cursor }, signal });
    owners.push(...data.owners);
    cursor = data.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return owners;
}

/** Loads the documents of a scope in pages, and notifies `onPage` of all that are known so far. */
export async function loadDocuments(
  { collectionId, ownerId }: Scope,
  onPage: (documents: readonly ListedDocument[], isComplete: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  const documents: ListedDocument[] = [];
  let cursor: string | undefined;
  do {
    const query = { collectionId, ownerId, limit: 1000, content: "false", cursor };
    const { data } = await ask<ListAnswer>(ROUTES.byCollection, { query, signal });
    documents.push(...data.resources.map(listed));
    cursor = data.nextCursor ?? undefined;
    onPage([...documents], cursor === undefined);
  } while (cursor !== undefined);
}

/** What is known of a scope's documents. */
export interface DocumentsState {
  readonly documents: readonly ListedDocument[];
  readonly isComplete: boolean;
  readonly error: unknown;
  readonly reload: () => void;
}

/** Loads the documents of a scope, and again on `reload`; the earlier ones stay until then. */
export function useDocuments({ collectionId, ownerId }: Scope): DocumentsState {
  const empty = { documents: [], isComplete: false, error: undefined };
  const [state, setState] = useState<Omit<DocumentsState, "reload">>(empty);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const isFirst = turn === 0;
    const onPage = (documents: readonly ListedDocument[], isComplete: boolean): void => {
      if (isFirst || isComplete) setState({ documents, isComplete, error: undefined });
    };
    loadDocuments({ collectionId, ownerId }, onPage, abort.signal).catch((error: unknown) => {
      if (!abort.signal.aborted) setState((before) => ({ ...before, error }));
    });
    return () => abort.abort();
  }, [collectionId, ownerId, turn]);
  return { ...state, reload: () => setTurn((before) => before + 1) };
}

/** The folder that fills a scope, if this daemon watches one. */
export async function folderOf(
  { collectionId, ownerId }: Scope,
  signal?: AbortSignal,
): Promise<string | undefined> {
  if (me.value?.daemon !== true) return undefined;
  const { sources } = await ask<LiveStatus>("/v1/daemon/status", { signal });
  return sources.find((each) => each.collectionId === collectionId && each.ownerId === ownerId)?.path;
}
