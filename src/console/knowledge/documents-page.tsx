import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ago, count, counted } from "../view/format.ts";
import { useLoad, useNow } from "../view/load.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Bones, Empty, ErrorNotice, State } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { Rows } from "../parts/rows.tsx";
import { toast } from "../parts/toast.tsx";
import { addressOf } from "../view/address.ts";
import { place, refine } from "../view/router.ts";
import { liveTurn } from "../client/live.ts";
import { may } from "../client/session.ts";
import { batchEnds, batches, CHOSEN_MAX, startBatches } from "./batches.ts";
import { folderOf, useDocuments } from "./documents.ts";
import type { DocumentsState, Filter, Scope, SortKey } from "./documents.ts";
import { STATUS_WORDS } from "./listed-document.ts";
import type { ListedDocument, Status } from "./listed-document.ts";
import { ownerWords } from "./owner-words.ts";

const ROW_PX = 60;

/** The documents of one owner in a collection: filter, sort, select, delete and retry. */
export function DocumentsPage(scope: Scope): JSX.Element {
  const { query } = place.value;
  const sort = sortOf(query.get("sort"));
  const filter: Filter = {
    text: query.get("q") ?? "",
    status: statusOf(query.get("status")),
    sort,
    // The newest first, unless a person turns it round.
    isDescending: (query.get("order") ?? (sort === "updated" ? "down" : "up")) === "down",
  };
  const list = useDocuments(scope, filter);
  const { documents, statuses, isCurrent, error, reload } = list;
  const folder = useLoad(`folder ${scope.collectionId} ${scope.ownerId}`, (signal) =>
    folderOf(scope, signal),
  );
  const all = statuses.queued + statuses.chunked + statuses.error;
  const hasFilter = filter.text.trim() !== "" || filter.status !== "all";
  useEffect(() => {
    // In case that the live link is lost.
    if (statuses.queued === 0) return undefined;
    const timer = setTimeout(reload, 5000);
    return () => clearTimeout(timer);
  }, [list.documents]);
  const turn = liveTurn.value + batchEnds.value;
  const changedAt = useRef(turn);
  useEffect(() => {
    if (!isCurrent || turn === changedAt.current) return undefined;
    // Of a long list all that was looked at is loaded again, so that one that is being filled is not loaded all the time.
    const timer = setTimeout(() => {
      changedAt.current = turn;
      reload();
    }, documents.length);
    return () => clearTimeout(timer);
  }, [documents, turn > changedAt.current]);
  const isEmpty = isCurrent && all === 0 && !hasFilter;

  return (
    <Page
      title={ownerWords(scope.ownerId)}
      intro={
        <>
          <a href={addressOf(["knowledge"])}>Knowledge</a> ›{" "}
          {isCurrent || all > 0 ? counted(all, "document") : "loading"}
          {filter.text.trim() === "" ? "" : ` with “${filter.text.trim()}”`}
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
      {all === 0 && !isCurrent && !hasFilter && error === undefined ? <Bones lines={8} /> : null}
      {isEmpty ? <NoDocuments ownerId={scope.ownerId} /> : null}
      {all > 0 || hasFilter ? <DocumentsTable list={list} filter={filter} folder={folder.value} /> : null}
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
  list,
  filter,
  folder,
}: {
  readonly list: DocumentsState;
  readonly filter: Filter;
  readonly folder: string | undefined;
}): JSX.Element {
  const { documents, total, isCurrent } = list;
  const [chosen, setChosen] = useState<ReadonlyMap<string, ListedDocument>>(new Map());
  const [isDeleting, setIsDeleting] = useState(false);
  const [error, setError] = useState<unknown>();
  const now = useNow(30_000);
  const isAll =
    total > 0 && chosen.size >= Math.min(total, CHOSEN_MAX) && documents.every(({ id }) => chosen.has(id));
  const choose = (some: readonly ListedDocument[], isChosen: boolean): void => {
    const next = new Map(chosen);
    for (const each of some) {
      if (isChosen) next.set(each.id, each);
      else next.delete(each.id);
    }
    setChosen(next);
  };
  const none = (): void => setChosen(new Map());
  const chooseAll = async (): Promise<void> => {
    setError(undefined);
    try {
      choose(await list.loadFirst(CHOSEN_MAX), true);
      if (total > CHOSEN_MAX)
        toast(`The first ${count(CHOSEN_MAX)} documents are selected, no more at a time.`);
    } catch (failure) {
      setError(failure);
    }
  };
  const selected = [...chosen.values()];
  const failed = selected.filter(({ status }) => status === "failed");
  const isBusy = batches.value.some(({ state }) => state === "working");
  const retry = async (): Promise<void> => {
    setError(undefined);
    try {
      await startBatches(
        "retry",
        failed.map(({ id }) => id),
      );
      none();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <>
      <Toolbar statuses={list.statuses} filter={filter} />
      {error === undefined ? null : <ErrorNotice error={error} />}
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
          <button
            type="button"
            class="button small"
            disabled={isBusy || failed.length === 0}
            onClick={() => void retry()}
          >
            Retry {counted(failed.length, "failed document")}
          </button>
          <button type="button" class="button small plain" onClick={none}>
            Select none
          </button>
        </div>
      )}
      {total === 0 && !isCurrent ? <Bones lines={8} /> : null}
      {total === 0 ? (
        isCurrent ? (
          <Empty
            title="No document matches"
            action={
              <button
                type="button"
                class="button"
                onClick={() => refine({ q: undefined, status: undefined })}
              >
                Show all
              </button>
            }
          />
        ) : null
      ) : (
        <Rows
          label="Documents"
          items={documents}
          count={total}
          onNeed={list.need}
          keyOf={({ id }) => id}
          rowPx={ROW_PX}
          columns="documents"
          head={
            <>
              <span role="columnheader">
                <input
                  type="checkbox"
                  aria-label={`Select all ${count(total)}`}
                  checked={isAll}
                  onChange={(event) => (event.currentTarget.checked ? void chooseAll() : none())}
                />
              </span>
              <SortHead filter={filter} name="title" label="Title" />
              <span role="columnheader">Status</span>
              <SortHead filter={filter} name="updated" label="Updated" />
            </>
          }
          row={(document) => (
            <DocumentCells
              document={document}
              isChosen={chosen.has(document.id)}
              onChoose={(isChosen) => choose([document], isChosen)}
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
          onStarted={none}
        />
      ) : null}
    </>
  );
}

function Toolbar({
  statuses: { queued, chunked, error },
  filter,
}: {
  readonly statuses: DocumentsState["statuses"];
  readonly filter: Filter;
}): JSX.Element {
  const counts = { all: queued + chunked + error, searchable: chunked, waiting: queued, failed: error };
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
  const { id, title, origin, status, message, warning, updatedMs } = document;
  const { label, kind: sign } = STATUS_WORDS[status];
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
        await startBatches(
          "delete",
          mine.map(({ id }) => id),
        );
        onStarted();
      }}
      onClose={onClose}
    />
  );
}

function statusOf(text: string | null): Status | "all" {
  return text === "searchable" || text === "waiting" || text === "failed" ? text : "all";
}

function sortOf(text: string | null): SortKey {
  return text === "title" ? text : "updated";
}
