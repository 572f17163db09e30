import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ChunksAnswer } from "../../wire/answers.ts";
import type { ResourceAnswer, ResourceRecord } from "../../wire/resource.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { counted } from "../view/format.ts";
import { folderOf } from "../knowledge/documents.ts";
import { stateOf } from "../knowledge/listed-document.ts";
import { ownerWords } from "../knowledge/owner-words.ts";
import { useLoad } from "../view/load.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Notice, Show } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { toast } from "../parts/toast.tsx";
import { addressOf } from "../view/address.ts";
import { go, route } from "../view/router.ts";
import { liveTurn } from "../client/live.ts";
import { may } from "../client/session.ts";
import { ChunkedText } from "../chunks/chunked-text.tsx";
import { DocumentFacts } from "./document-facts.tsx";
import { EditForm } from "./edit-form.tsx";

type Chunks = ChunksAnswer["data"];

/** A document with its chunks, and the folder that manages it. */
interface Shown {
  readonly record: ResourceRecord;
  readonly chunks: Chunks;
  /** Path of its file on the machine of the daemon; undefined: no folder manages it. */
  readonly file: string | undefined;
}

/** Characters that are shown at first: more would take the browser seconds to lay out. */
const SHOWN_CHARS = 100_000;

/** One document: its text with the boundaries of its chunks, what is known about it, and its changes. */
export function DocumentPage(): JSX.Element {
  const id = route.value.path[1] ?? "";
  const loaded = useLoad(`document ${id}`, (signal) => loadDocument(id, signal), undefined, liveTurn);
  const title = loaded.value?.record.title ?? "Document";
  const waits = loaded.value?.record.metadata?.status === "queued";
  useEffect(() => {
    // In case that the live link is lost.
    if (!waits) return undefined;
    const timer = setTimeout(loaded.reload, 5000);
    return () => clearTimeout(timer);
  }, [loaded.atMs]);
  return (
    <Page key={id} title={title} intro={<Crumbs record={loaded.value?.record} />}>
      <Show loaded={loaded} lines={10}>
        {(shown) => <Loaded shown={shown} reload={loaded.reload} />}
      </Show>
    </Page>
  );
}

async function loadDocument(id: string, signal: AbortSignal): Promise<Shown> {
  const path = `${ROUTES.resource}/${encodeURIComponent(id)}`;
  const { data: record } = await ask<ResourceAnswer>(path, { signal });
  if (record.isDeleted) {
    const chunks = { resourceId: id, version: 0, title: record.title, chunks: [] };
    return { record, chunks, file: undefined };
  }
  const { data: chunks } = await ask<ChunksAnswer>(`${path}/chunks`, { signal });
  const { collectionId = "", ownerId = "" } = record;
  const relative = stateOf(record).path;
  const folder = relative === undefined ? undefined : await folderOf({ collectionId, ownerId }, signal);
  return { record, chunks, file: folder === undefined ? undefined : `${folder}/${relative ?? ""}` };
}

function Crumbs({ record }: { readonly record: ResourceRecord | undefined }): JSX.Element {
  const { collectionId = "", ownerId = "" } = record ?? {};
  return (
    <>
      <a href={addressOf(["knowledge"])}>Knowledge</a>
      {record === undefined ? null : (
        <>
          {" › "}
          <a href={addressOf(["knowledge"], { collection: collectionId, owner: ownerId })}>
            {ownerWords(ownerId)}
          </a>
        </>
      )}
    </>
  );
}

function Loaded({ shown, reload }: { readonly shown: Shown; readonly reload: () => void }): JSX.Element {
  const { record, chunks, file } = shown;
  const [isEditing, setIsEditing] = useState(false);
  const [isDeleting, setIsDeleting] = useState(false);
  if (record.isDeleted) {
    return (
      <Notice kind="wait" title="This document is deleted">
        <p>Searches no longer find it. Its record stays for a while; its text is gone.</p>
      </Notice>
    );
  }
  const { status, message, warning } = stateOf(record);
  const canWrite = may("write") && file === undefined;
  return (
    <>
      {file === undefined ? null : (
        <Notice kind="good" title="A folder manages this document">
          <p>
            Edit the file instead: <span class="path">{file}</span>
          </p>
        </Notice>
      )}
      {status === "failed" ? (
        <Notice kind="bad" title={message ?? "Reading this document failed."}>
          <p>Its last good text, if there is one, is still found.</p>
        </Notice>
      ) : null}
      {warning === undefined ? null : <Notice kind="wait" title={warning} />}
      {canWrite ? (
        <div class="row">
          <button
            type="button"
            class="button"
            aria-expanded={isEditing}
            onClick={() => setIsEditing(!isEditing)}
          >
            Edit
          </button>
          <button type="button" class="button danger" onClick={() => setIsDeleting(true)}>
            Delete…
          </button>
        </div>
      ) : null}
      {isEditing ? (
        <EditForm
          record={record}
          onClose={() => setIsEditing(false)}
          onSaved={() => {
            setIsEditing(false);
            toast("Saved. Searches find the new text.");
            reload();
          }}
        />
      ) : null}
      <DocumentFacts record={record} version={chunks.version} chunks={chunks.chunks.length} />
      <Text key={`${record._id} ${chunks.version}`} content={record.content ?? ""} chunks={chunks.chunks} />
      {isDeleting ? (
        <Confirm
          title="Delete this document?"
          effect={
            <p>
              “{record.title}” and its {counted(chunks.chunks.length, "chunk")} can no longer be found by any
              search or answer. Its text cannot be restored from here.
            </p>
          }
          number={1}
          action="Delete 1 document"
          onConfirm={async () => {
            await ask(`${ROUTES.resource}/${record._id}`, { method: "DELETE" });
            toast(`Deleted “${record.title}”.`);
            go(addressOf(["knowledge"], { collection: record.collectionId, owner: record.ownerId }));
          }}
          onClose={() => setIsDeleting(false)}
        />
      ) : null}
    </>
  );
}

function Text({
  content,
  chunks,
}: {
  readonly content: string;
  readonly chunks: Chunks["chunks"];
}): JSX.Element {
  const named = route.value.query.get("chunk") ?? "";
  const byId = chunks.findIndex(({ id }) => id === named);
  const wanted = byId === -1 ? Number(named === "" ? Number.NaN : named) - 1 : byId;
  if (content === "") return <p class="muted">This document has no text.</p>;
  return (
    <section class="card" aria-label="Text">
      <ChunkedText content={content} chunks={chunks} shownChars={SHOWN_CHARS} wanted={wanted} />
    </section>
  );
}
