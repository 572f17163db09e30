import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Bones, Empty, ErrorNotice } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { route } from "../view/router.ts";
import { liveTurn } from "../client/live.ts";
import { may } from "../client/session.ts";
import { workEnds } from "./many-documents.ts";
import { folderOf, useDocuments } from "./documents.ts";
import type { Filter, Scope } from "./documents.ts";
import { DocumentsTable } from "./documents-table.tsx";
import type { Status } from "./listed-document.ts";
import { ownerWords } from "./owner-words.ts";

/** The documents of one owner in a collection: filter, select, delete and retry. */
export function DocumentsPage(scope: Scope): JSX.Element {
  const { query } = route.value;
  const filter: Filter = { text: query.get("q") ?? "", status: statusOf(query.get("status")) };
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
  const turn = liveTurn.value + workEnds.value;
  const changedAt = useRef(turn);
  useEffect(() => {
    if (!isCurrent || turn === changedAt.current) return undefined;
    // A reload loads all visited pages again, so a long list that is being filled is reloaded less often.
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
          {folder.value === undefined ? null : (
            <>
              {" from the folder "}
              <a class="path" href={addressOf(["folders"], { path: folder.value })}>
                {folder.value}
              </a>
            </>
          )}
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

function statusOf(text: string | null): Status | "all" {
  return text === "searchable" || text === "waiting" || text === "failed" ? text : "all";
}
