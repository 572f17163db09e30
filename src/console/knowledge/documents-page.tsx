import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ago, count, counted } from "../view/format.ts";
import { useLoad, useNow } from "../view/load.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Bones, Empty, ErrorNotice, State } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { Rows } from "../parts/rows.tsx";
import { addressOf } from "../view/address.ts";
import { place, refine } from "../view/router.ts";
import { liveTurn } from "../client/live.ts";
import { may } from "../client/session.ts";
import { bulk, onBulkEnd, startBulk } from "./bulk.ts";
import { folderOf, useDocuments } from "./documents.ts";
import type { Scope } from "./documents.ts";
import { filtered } from "./filter.ts";
import type { Filter, SortKey } from "./filter.ts";
import { STATUS_WORDS } from "./listed-document.ts";
import type { ListedDocument, Status } from "./listed-document.ts";
import { ownerWords } from "./owner-words.ts";

const ROW_PX = 60;

/** The documents of one owner in a collection: filter, sort, select, delete and retry. */
export function DocumentsPage(scope: Scope): JSX.Element {
  const { documents, isComplete, error, reload } = useDocuments(scope);
  const folder = useLoad(`folder ${scope.collectionId} ${scope.ownerId}`, (signal) =>
    folderOf(scope, signal),
  );
  useEffect(() => onBulkEnd(reload), []);
  const { query } = place.value;
  const filter: Filter = {
    text: query.get("q") ?? "",
    status: statusOf(query.get("status")),
    sort: sortOf(query.get("sort")),
    // The newest first, unless a person turns it round.
    isDescending: (query.get("order") ?? (query.get("sort") === null ? "down" : "up")) === "down",
  };
  const shown = useMemo(
    () => filtered(documents, filter),
    [documents, filter.text, filter.status, filter.sort, filter.isDescending],
  );
  const waits = documents.some(({ status }) => status === "waiting");
  useEffect(() => {
    // In case that the live link is lost.
    if (!waits) return undefined;
    const timer = setTimeout(reload, 5000);
    return () => clearTimeout(timer);
  }, [documents]);
  const turn = liveTurn.value;
  const changedAt = useRef(turn);
  useEffect(() => {
    if (!isComplete || turn === changedAt.current) return undefined;
    // A long list takes its time to load, so that one that is being filled is not loaded all the time.
    const timer = setTimeout(() => {
      changedAt.current = turn;
      reload();
    }, documents.length);
    return () => clearTimeout(timer);
  }, [documents, turn > changedAt.current]);

  return (
    <Page
      title={ownerWords(scope.ownerId)}
      intro={
        <>
          <a href={addressOf(["knowledge"])}>Knowledge</a> › {counted(documents.length, "document")}
          {isComplete || error !== undefined ? "" : ", loading more"}
          {folder.value === undefined ? "" : ` from the folder ${folder.value}`}
        </>
      }
      actions={
        may("write") ? (
          <a class="button primary" href={addressOf(["add"], { owner: scope.ownerId })}>
            Add documents
          </a>
        ) : undefined
      }
      width="wide"
    >
      {error === undefined ? null : <ErrorNotice error={error} retry={reload} />}
      {documents.length === 0 && !isComplete && error === undefined ? <Bones lines={8} /> : null}
      {documents.length === 0 && isComplete ? <NoDocuments ownerId={scope.ownerId} /> : null}
      {documents.length === 0 ? null : (
        <DocumentsTable documents={documents} shown={shown} filter={filter} folder={folder.value} />
      )}
    </Page>
  );
}

function NoDocuments({ ownerId }: { readonly ownerId: string }): JSX.Element {
  return (
    <Empty
      title="No documents here"
      action={
        <a class="button primary" href={addressOf(["add"], { owner: ownerId })}>
          Add documents
        </a>
      }
    >
      This owner has none in this collection now.
    </Empty>
  );
}

function DocumentsTable({
  documents,
  shown,
  filter,
  folder,
}: {
  readonly documents: readonly ListedDocument[];
  readonly shown: readonly ListedDocument[];
  readonly filter: Filter;
  readonly folder: string | undefined;
}): JSX.Element {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isDeleting, setIsDeleting] = useState(false);
  const now = useNow(30_000);
  const selected = documents.filter(({ id }) => chosen.has(id));
  const isAll = shown.length > 0 && shown.every(({ id }) => chosen.has(id));
  const choose = (ids: readonly string[], isChosen: boolean): void => {
    const next = new Set(chosen);
    for (const id of ids) {
      if (isChosen) next.add(id);
      else next.delete(id);
    }
    setChosen(next);
  };
  const failed = selected.filter(({ status }) => status === "failed");
  const isBusy = bulk.value?.state === "working";
  const retry = (): void => {
    startBulk(
      "retry",
      failed.map((each) => ({ id: each.id, title: each.title, again: againOf(each) })),
    );
    setChosen(new Set());
  };
  return (
    <>
      <Toolbar documents={documents} filter={filter} />
      {chosen.size === 0 || !may("write") ? null : (
        <div class="row" role="group" aria-label="Selected documents">
          <strong>{counted(selected.length, "document")} selected</strong>
          <button
            type="button"
            class="button small danger"
            disabled={isBusy}
            onClick={() => setIsDeleting(true)}
          >
            Delete…
          </button>
          <button type="button" class="button small" disabled={isBusy || failed.length === 0} onClick={retry}>
            Retry {counted(failed.length, "failed document")}
          </button>
          <button type="button" class="button small plain" onClick={() => setChosen(new Set())}>
            Select none
          </button>
        </div>
      )}
      {shown.length === 0 ? (
        <Empty
          title="No document matches"
          action={
            <button type="button" class="button" onClick={() => refine({ q: undefined, status: undefined })}>
              Show all {count(documents.length)}
            </button>
          }
        />
      ) : (
        <Rows
          label="Documents"
          items={shown}
          keyOf={({ id }) => id}
          rowPx={ROW_PX}
          columns="documents"
          head={
            <>
              <span role="columnheader">
                <input
                  type="checkbox"
                  aria-label={`Select all ${count(shown.length)} shown`}
                  checked={isAll}
                  onChange={(event) =>
                    choose(
                      shown.map(({ id }) => id),
                      event.currentTarget.checked,
                    )
                  }
                />
              </span>
              <SortHead filter={filter} name="title" label="Title" />
              <SortHead filter={filter} name="status" label="Status" />
              <SortHead filter={filter} name="updated" label="Updated" />
            </>
          }
          row={(document) => (
            <DocumentCells
              document={document}
              isChosen={chosen.has(document.id)}
              onChoose={(isChosen) => choose([document.id], isChosen)}
              nowMs={now}
            />
          )}
        />
      )}
      {isDeleting ? (
        <DeleteDialog
          selected={selected}
          folder={folder}
          onClose={() => setIsDeleting(false)}
          onStarted={() => setChosen(new Set())}
        />
      ) : null}
    </>
  );
}

function Toolbar({
  documents,
  filter,
}: {
  readonly documents: readonly ListedDocument[];
  readonly filter: Filter;
}): JSX.Element {
  const counts = useMemo(() => {
    const found = { all: documents.length, searchable: 0, waiting: 0, failed: 0 };
    for (const { status } of documents) found[status] += 1;
    return found;
  }, [documents]);
  return (
    <div class="toolbar">
      <input
        class="input"
        type="search"
        aria-label="Filter by title, path, address or metadata"
        placeholder="Filter by title, path, address, metadata"
        value={filter.text}
        onInput={(event) => refine({ q: event.currentTarget.value })}
      />
      <div class="segments" role="group" aria-label="Status">
        {(["all", "searchable", "waiting", "failed"] as const).map((status) => (
          <button
            type="button"
            key={status}
            aria-pressed={filter.status === status}
            onClick={() => refine({ status: status === "all" ? undefined : status })}
          >
            {status === "all" ? "All" : STATUS_WORDS[status].label} <span>{count(counts[status])}</span>
          </button>
        ))}
      </div>
    </div>
  );
}

function SortHead({
  filter,
  name,
  label,
}: {
  readonly filter: Filter;
  readonly name: SortKey;
  readonly label: string;
}): JSX.Element {
  const isSorted = filter.sort === name;
  const direction = filter.isDescending ? "descending" : "ascending";
  return (
    <span role="columnheader" aria-sort={isSorted ? direction : "none"}>
      <button
        type="button"
        class="sort"
        onClick={() => refine({ sort: name, order: isSorted && !filter.isDescending ? "down" : "up" })}
      >
        {label}
        <span aria-hidden="true">{isSorted ? (filter.isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </span>
  );
}

function DocumentCells({
  document,
  isChosen,
  onChoose,
  nowMs,
}: {
  readonly document: ListedDocument;
  readonly isChosen: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly nowMs: number;
}): JSX.Element {
  const { id, title, path, url, kind, description, status, message, warning, updatedMs } = document;
  const { label, kind: sign } = STATUS_WORDS[status];
  const origin = path ?? (kind === "link" ? url : undefined) ?? description;
  return (
    <>
      <span role="cell">
        <input
          type="checkbox"
          aria-label={`Select ${title}`}
          checked={isChosen}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
      </span>
      <span role="cell" class="clip">
        <a class="clip block" href={addressOf(["documents", id])}>
          {title}
        </a>
        <span class="clip block small muted" title={message ?? warning ?? origin}>
          {message ?? warning ?? origin}
        </span>
      </span>
      <span role="cell">
        <State kind={sign}>{label}</State>
      </span>
      <span role="cell" class="small muted numeric">
        {ago(updatedMs, nowMs)}
      </span>
    </>
  );
}

function DeleteDialog({
  selected,
  folder,
  onClose,
  onStarted,
}: {
  readonly selected: readonly ListedDocument[];
  readonly folder: string | undefined;
  readonly onClose: () => void;
  readonly onStarted: () => void;
}): JSX.Element {
  const isManaged = ({ path }: ListedDocument): boolean => folder !== undefined && path !== undefined;
  const mine = selected.filter((each) => !isManaged(each));
  const managed = selected.length - mine.length;
  const kept =
    managed === 0 ? null : (
      <p>
        {counted(managed, "document")} {managed === 1 ? "comes" : "come"} from the folder{" "}
        <span class="path">{folder}</span> and {managed === 1 ? "stays" : "stay"}: delete the files there
        instead.
      </p>
    );
  if (mine.length === 0) {
    return (
      <Confirm
        title="Nothing to delete here"
        effect={kept}
        number={0}
        action="Close"
        onConfirm={() => Promise.resolve()}
        onClose={onClose}
      />
    );
  }
  return (
    <Confirm
      title={`Delete ${counted(mine.length, "document")}?`}
      effect={
        <>
          <p>
            {mine.length === 1 ? "Its text" : "Their texts"} can no longer be found by any search or answer,
            and cannot be restored from here.
          </p>
          {kept}
        </>
      }
      number={mine.length}
      action={`Delete ${counted(mine.length, "document")}`}
      onConfirm={async () => {
        startBulk(
          "delete",
          mine.map(({ id, title }) => ({ id, title, again: {} })),
        );
        onStarted();
      }}
      onClose={onClose}
    />
  );
}

/** The update that takes a document in again: its address is read anew, its text split anew. */
export function againOf({ url, settings }: Pick<ListedDocument, "url" | "settings">): object {
  return url === undefined ? { settings: settings ?? {} } : { url };
}

function statusOf(text: string | null): Status | "all" {
  return text === "searchable" || text === "waiting" || text === "failed" ? text : "all";
}

function sortOf(text: string | null): SortKey {
  return text === "title" || text === "status" ? text : "updated";
}
