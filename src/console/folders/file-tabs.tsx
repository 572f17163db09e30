import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Approval, SourceStatus } from "../../wire/daemon-status.ts";
import type { TrashedText } from "../../wire/daemon-files.ts";
import { askDaemon } from "../client/daemon.ts";
import { bytes, counted, moment } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Empty, ErrorNotice, Show } from "../parts/notice.tsx";
import { Words } from "../parts/words.tsx";
import { Approve } from "./approve.tsx";
import { FileRow, useCommand } from "./file-row.tsx";

const EVERY_MS = 3000;
/** More are seldom read, and the count stands above. */
const LISTED_MAX = 500;

/** Deletes that wait for a person, and their approval. */
export function HeldTab({
  source,
  reload,
}: {
  readonly source: SourceStatus;
  readonly reload: () => void;
}): JSX.Element {
  const { path: folder, approval } = source;
  const loaded = useLoad(
    `held ${folder} ${source.held} ${String(source.halted)}`,
    async (signal) =>
      (await askDaemon("files", { path: folder, state: "held", limit: LISTED_MAX }, signal)).files,
    EVERY_MS,
  );
  const [asked, setAsked] = useState<Approval | undefined>();
  return (
    <Show loaded={loaded}>
      {(files) =>
        approval === null && files.length === 0 ? (
          <Empty title="No delete is held">
            When much of a folder is gone at once, its deletes wait here for you.
          </Empty>
        ) : (
          <div class="stack">
            {approval === null ? null : (
              <div class="row spread">
                <p>
                  <Words of={approval.reason} />
                </p>
                <button type="button" class="button danger" onClick={() => setAsked(approval)}>
                  {approval.held === 0 ? "Send again…" : `Approve ${counted(approval.held, "delete")}…`}
                </button>
              </div>
            )}
            {files.length === 0 ? null : (
              <ul class="card flush files" aria-label="Files whose delete is held">
                {files.map((file) => (
                  <FileRow
                    key={file.path}
                    file={file}
                    words={approval?.reason === file.message ? "" : file.message}
                  />
                ))}
              </ul>
            )}
            <p class="hint">
              Put the files back, and nothing is deleted. Approve only what is here: another delete needs
              another approval.
            </p>
            {asked === undefined ? null : (
              <Approve
                approval={asked}
                onDone={() => {
                  loaded.reload();
                  reload();
                }}
                onClose={() => setAsked(undefined)}
              />
            )}
          </div>
        )
      }
    </Show>
  );
}

/** Saved texts of deleted files, which can be put back. */
export function TrashTab({ folder }: { readonly folder: string }): JSX.Element {
  const loaded = useLoad(
    `trash ${folder}`,
    async (signal) =>
      (await askDaemon("files", { path: folder, state: "deleted", limit: LISTED_MAX }, signal)).deleted,
  );
  const { error, run } = useCommand(loaded.reload);
  const restore = async ({ path, deletedAt }: TrashedText): Promise<string> => {
    const { files } = await askDaemon("undelete", { path, atMs: Date.parse(deletedAt) });
    const [file] = files;
    switch (file?.outcome) {
      case "restored":
        return `${path} is back.`;
      case "exists":
        return `${path} exists, and is left as it is.`;
      case "failed":
        throw new Error(file.reason);
      case undefined:
        return `${path} is not in the trash any more.`;
    }
  };
  return (
    <Show loaded={loaded}>
      {(texts) =>
        texts.length === 0 ? (
          <Empty title="The trash is empty">Texts of deleted files stay here for some days.</Empty>
        ) : (
          <div class="stack">
            {error === undefined ? null : <ErrorNotice error={error} />}
            <ul class="card flush files" aria-label="Deleted files">
              {texts.map((text) => (
                <li key={`${text.path} ${text.deletedAt}`}>
                  <div>
                    <span class="path">{text.path.slice(folder.length + 1)}</span>
                    <p class="small muted">
                      Deleted {moment(Date.parse(text.deletedAt))}, kept until{" "}
                      {moment(Date.parse(text.until))}, {bytes(text.sizeBytes)}
                      {text.isExact ? "" : "; the text alone, not the file's own bytes"}
                    </p>
                  </div>
                  <span />
                  <span />
                  <button type="button" class="button small" onClick={() => void run(() => restore(text))}>
                    Restore
                  </button>
                </li>
              ))}
            </ul>
          </div>
        )
      }
    </Show>
  );
}
