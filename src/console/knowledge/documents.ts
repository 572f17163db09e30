import { useEffect, useRef, useState } from "preact/hooks";
import type { LiveStatus } from "../../wire/daemon-status.ts";
import type { DocumentsAnswer } from "../../wire/documents.ts";
import type { OwnerEntry, OwnersAnswer } from "../../wire/owners.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { me } from "../client/session.ts";
import { listed, WIRE_STATUS, type ListedDocument, type Status } from "./listed-document.ts";

/** One owner's part of a collection. */
export type Scope = Pick<OwnerEntry, "collectionId" | "ownerId">;

/** The choices of a person in the list. */
export interface Filter {
  /** Words of title, description, address and metadata. */
  readonly text: string;
  readonly status: Status | "all";
}

/** Documents of a first page: some screens. */
const PAGE = 100;
/** The largest page of the service. */
const PAGE_MAX = 1000;
/** Pause after a key before the list is asked for. */
const TYPING_MS = 200;

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

/** The documents that are loaded so far, from the first on, and how many there are. */
interface Part {
  readonly documents: readonly ListedDocument[];
  readonly total: number;
  readonly statuses: DocumentsAnswer["data"]["statuses"];
  readonly nextCursor: string | null;
}

/** The loaded documents of a scope. */
export interface DocumentsState extends Part {
  /** Whether this is the answer to the present filter. */
  readonly isCurrent: boolean;
  readonly error: unknown;
  readonly reload: () => void;
  /** Loads documents until so many are there. */
  readonly need: (count: number) => void;
  /** Loads and returns the first documents that match. */
  readonly loadFirst: (count: number) => Promise<readonly ListedDocument[]>;
}

type State = Part & { readonly key: string; readonly isLoading: boolean; readonly error: unknown };

const EMPTY: State = {
  key: "",
  documents: [],
  total: 0,
  statuses: { queued: 0, chunked: 0, error: 0 },
  nextCursor: null,
  isLoading: true,
  error: undefined,
};

/** Loads the documents of a scope that match a filter, as many as are visible; the earlier ones stay until then. */
export function useDocuments(scope: Scope, filter: Filter): DocumentsState {
  const [state, setState] = useState(EMPTY);
  const [turn, setTurn] = useState(0);
  const latest = useRef(state);
  latest.current = state;
  const key = JSON.stringify([scope, filter]);
  useEffect(() => {
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      const { current } = latest;
      const isSame = current.key === key;
      if (!isSame && current.key !== "" && filter.text !== "") await pause(TYPING_MS);
      abort.signal.throwIfAborted();
      setState((before) => ({ ...before, isLoading: true }));
      const count = isSame ? Math.max(PAGE, current.documents.length) : PAGE;
      const part = await loadPart(scope, filter, undefined, count, abort.signal);
      if (!abort.signal.aborted) setState({ ...part, key, isLoading: false, error: undefined });
    };
    run().catch((error: unknown) => {
      if (!abort.signal.aborted) setState((before) => ({ ...before, isLoading: false, error }));
    });
    return () => abort.abort();
  }, [key, turn]);

  const need = (count: number): void => {
    const { nextCursor, documents, isLoading, error } = latest.current;
    const isKnown = latest.current.key === key && !isLoading && error === undefined;
    if (!isKnown || nextCursor === null || count <= documents.length) return;
    latest.current = { ...latest.current, isLoading: true };
    setState((before) => ({ ...before, isLoading: true }));
    loadPart(scope, filter, nextCursor, Math.max(PAGE, count - documents.length)).then(
      (part) =>
        // Unless it was reloaded meanwhile.
        setState((before) =>
          before.nextCursor === nextCursor && before.key === key
            ? { ...before, ...part, documents: [...before.documents, ...part.documents], isLoading: false }
            : before,
        ),
      (failure: unknown) => setState((before) => ({ ...before, isLoading: false, error: failure })),
    );
  };
  return {
    ...state,
    isCurrent: state.key === key,
    reload: () => setTurn((before) => before + 1),
    need,
    loadFirst: async (count) => (await loadPart(scope, filter, undefined, count)).documents,
  };
}

/** Loads documents after a cursor until there are so many. */
async function loadPart(
  { collectionId, ownerId }: Scope,
  { text, status }: Filter,
  after: string | undefined,
  count: number,
  signal?: AbortSignal,
): Promise<Part> {
  const documents: ListedDocument[] = [];
  let cursor = after;
  for (;;) {
    const query = {
      collectionId,
      ownerId,
      text: text.trim() === "" ? undefined : text.trim().slice(0, TEXT_CHARS_MAX),
      status: status === "all" ? undefined : WIRE_STATUS[status],
      limit: Math.min(PAGE_MAX, count - documents.length),
      cursor,
    };
    const { data } = await ask<DocumentsAnswer>(ROUTES.documents, { query, signal });
    documents.push(...data.documents.map(listed));
    if (data.nextCursor === null || documents.length >= count) return { ...data, documents };
    cursor = data.nextCursor;
  }
}

/** The longest text that the service searches for. */
const TEXT_CHARS_MAX = 500;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
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
