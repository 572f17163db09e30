import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { may } from "../client/session.ts";
import { Bones, Empty, ErrorNotice } from "../parts/notice.tsx";
import { Rows } from "../parts/rows.tsx";
import { toast } from "../parts/toast.tsx";
import { count, counted } from "../view/format.ts";
import { useNow } from "../view/load.ts";
import { refine } from "../view/router.ts";
import { CHOSEN_MAX, work, workOnMany } from "./many-documents.ts";
import { DeleteDocuments } from "./delete-documents.tsx";
import { DocumentCells } from "./document-row.tsx";
import type { DocumentsState, Filter } from "./documents.ts";
import { type ListedDocument, STATUS_WORDS } from "./listed-document.ts";

const ROW_PX = 60;

/** The documents of a scope as a table, with what can be done with those that are selected. */
export function DocumentsTable({
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
  // The box of the head stays checked, and ignores clicks, while the documents that it selects are loaded. Disabled, it would
  // lose the focus.
  const [isChoosingAll, setIsChoosingAll] = useState(false);
  const [isDeleting, setIsDeleting] = useState(false);
  const [error, setError] = useState<unknown>();
  const now = useNow(30_000);
  const isAll =
    total > 0 && chosen.size >= Math.min(total, CHOSEN_MAX) && documents.every(({ id }) => chosen.has(id));
  const choose = (some: readonly ListedDocument[], isChosen: boolean): void =>
    setChosen((before) => {
      const next = new Map(before);
      for (const each of some) {
        if (isChosen) next.set(each.id, each);
        else next.delete(each.id);
      }
      return next;
    });
  const none = (): void => setChosen(new Map());
  const chooseAll = async (): Promise<void> => {
    setError(undefined);
    setIsChoosingAll(true);
    try {
      choose(await list.loadFirst(CHOSEN_MAX), true);
      if (total > CHOSEN_MAX)
        toast(`The first ${count(CHOSEN_MAX)} documents are selected, which is the most at a time.`);
    } catch (failure) {
      setError(failure);
    } finally {
      setIsChoosingAll(false);
    }
  };
  const selected = [...chosen.values()];
  const failed = selected.filter(({ status }) => status === "failed");
  const isBusy = work.value?.state === "working";
  const retry = (): void => {
    void workOnMany("retry", failed);
    none();
  };
  return (
    <>
      <DocumentsToolbar statuses={list.statuses} filter={filter} />
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
          {failed.length === 0 ? null : (
            <button type="button" class="button small" disabled={isBusy} onClick={retry}>
              Retry {counted(failed.length, "failed document")}
            </button>
          )}
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
                  checked={isAll || isChoosingAll}
                  aria-busy={isChoosingAll}
                  aria-disabled={isChoosingAll}
                  onClick={(event) => isChoosingAll && event.preventDefault()}
                  onChange={(event) => (event.currentTarget.checked ? void chooseAll() : none())}
                />
              </span>
              <span role="columnheader">Title</span>
              <span role="columnheader">Status</span>
              <span role="columnheader">Updated</span>
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
        <DeleteDocuments
          selected={selected}
          folder={folder}
          onClose={() => setIsDeleting(false)}
          onStarted={none}
        />
      ) : null}
    </>
  );
}

/** Filters the documents by words and by status. */
function DocumentsToolbar({
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
