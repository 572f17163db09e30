import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Approval, LiveStatus } from "../../wire/daemon-status.ts";
import { askDaemon } from "../client/daemon.ts";
import { counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Empty, Notice, Show } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { route } from "../view/router.ts";
import { Icon } from "../parts/icons.tsx";
import { addressOf } from "../view/address.ts";
import { Approve } from "./approve.tsx";
import { AddFolderPage } from "./add-folder-page.tsx";
import { FolderCards, rateOf } from "./folder-cards.tsx";
import { FolderPage } from "./folder-page.tsx";

const EVERY_MS = 2000;
const ADD_FOLDER = addressOf(["folders"], { new: "1" });

/** The watched folders, or one of them. */
export function FoldersPage(): JSX.Element {
  const { query } = route.value;
  if (query.has("new")) return <AddFolderPage />;
  const path = query.get("path");
  return path === null ? <AllFolders /> : <FolderPage key={path} path={path} />;
}

function AllFolders(): JSX.Element {
  const loaded = useLoad("folders", (signal) => askDaemon("status", {}, signal), EVERY_MS);
  return (
    <Page
      title="Folders"
      actions={
        <a class="button" href={ADD_FOLDER}>
          <Icon name="plus" />
          Add a folder
        </a>
      }
      intro={
        loaded.value === undefined
          ? "What kbsync keeps in agreement with the knowledge base."
          : rateOf(loaded.value) || "What kbsync keeps in agreement with the knowledge base."
      }
    >
      <Show loaded={loaded}>
        {(status) =>
          status.sources.length === 0 && status.removed.length === 0 ? (
            <Empty
              title="No folder is watched"
              action={
                <a class="button primary" href={ADD_FOLDER}>
                  Watch a folder
                </a>
              }
            >
              Its files become documents, and every change of them is searchable a moment later.
            </Empty>
          ) : (
            <>
              <FolderCards status={status} />
              <Removed status={status} reload={loaded.reload} />
            </>
          )
        }
      </Show>
    </Page>
  );
}

function Removed({
  status,
  reload,
}: {
  readonly status: LiveStatus;
  readonly reload: () => void;
}): JSX.Element | null {
  const [asked, setAsked] = useState<Approval | undefined>();
  if (status.removed.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="removed-folders">
      <h2 id="removed-folders">No longer watched</h2>
      {status.removed.map((removed) => (
        <Notice
          key={removed.path}
          kind="wait"
          title={`${counted(removed.resources, "document")} of ${removed.path} ${removed.resources === 1 ? "stays" : "stay"}`}
          action={
            removed.approved ? undefined : (
              <button type="button" class="button small danger" onClick={() => setAsked(removed.approval)}>
                Delete {counted(removed.resources, "document")}…
              </button>
            )
          }
        >
          <p>
            {removed.approved
              ? "They are being deleted."
              : "The folder left the configuration. Its documents are still found, until you approve their deletion."}
          </p>
        </Notice>
      ))}
      {asked === undefined ? null : (
        <Approve approval={asked} onDone={reload} onClose={() => setAsked(undefined)} />
      )}
    </section>
  );
}
