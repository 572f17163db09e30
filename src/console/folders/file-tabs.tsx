import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Approval, SourceStatus } from "../../wire/daemon.ts";
import type { TrashedText, TroubledFile } from "../../wire/daemon-files.ts";
import { askDaemon } from "../client/daemon.ts";
import { bytes, counted, moment } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Empty, ErrorNotice, Show } from "../parts/notice.tsx";
import { toast } from "../parts/toast.tsx";
import { WhyButton } from "./why-dialog.tsx";

const EVERY_MS = 3000;
/** More are seldom read, and the count stands above. */
const LISTED_MAX = 500;

/** Runs a command of a list, shows its failure, and loads the list again. */
function useCommand(reload: () => void) {
  const [error, setError] = useState<unknown>();
  const run = async (work: () => Promise<string>): Promise<void> => {
    setError(undefined);
    try {
      toast(await work());
      reload();
    } catch (failure) {
      setError(failure);
    }
  };
  return { error, run };
}

/** Files that wait or failed, each with its reason. */
export function TroubledTab({
  folder,
  state,
}: {
  readonly folder: string;
  readonly state: "waiting" | "failed";
}): JSX.Element {
  const loaded = useLoad(
    `${state} ${folder}`,
    async (signal) => (await askDaemon("troubled", { path: folder, state, limit: LISTED_MAX }, signal)).files,
    EVERY_MS,
  );
  const { error, run } = useCommand(loaded.reload);
  const retry = async (path: string): Promise<string> => {
    const { sources } = await askDaemon("retry", { path });
    const tried = sources.reduce((sum, { failed, parked, deletes }) => sum + failed + parked + deletes, 0);
    return `${counted(tried, "file")} tried again.`;
  };
  return (
    <Show loaded={loaded}>
      {(files) =>
        files.length === 0 ? (
          <Empty title={state === "failed" ? "No file failed" : "No file waits"}>
            {state === "failed"
              ? "Every file that is wanted could be read and sent."
              : "Everything that was saved is searchable, or failed."}
          </Empty>
        ) : (
          <div class="stack">
            <div class="row spread">
              <p class="muted">
                {files.length === LISTED_MAX
                  ? `The first ${LISTED_MAX} files`
                  : counted(files.length, "file")}
              </p>
              <button type="button" class="button small" onClick={() => void run(() => retry(folder))}>
                Retry all
              </button>
            </div>
            {error === undefined ? null : <ErrorNotice error={error} />}
            <ul class="card flush files" aria-label={state === "failed" ? "Failed files" : "Waiting files"}>
              {files.map((file) => (
                <TroubledRow
                  key={file.path}
                  file={file}
                  onRetry={() => void run(() => retry(pathOf(file)))}
                />
              ))}
            </ul>
          </div>
        )
      }
    </Show>
  );
}

function pathOf({ source, path }: Pick<TroubledFile, "source" | "path">): string {
  return `${source}/${path}`;
}

/** A file with what there is to say of it. */
function FileRow({
  file,
  words,
}: {
  readonly file: Pick<TroubledFile, "source" | "path">;
  readonly words: string | null;
}): JSX.Element {
  return (
    <li>
      <div>
        <span class="path">{file.path}</span>
        <p class="small muted">{words}</p>
      </div>
      <span />
      <span />
      <WhyButton path={pathOf(file)} />
    </li>
  );
}

function TroubledRow({
  file,
  onRetry,
}: {
  readonly file: TroubledFile;
  readonly onRetry: () => void;
}): JSX.Element {
  return (
    <li>
      <div>
        <span class="path">{file.path}</span>
        <p class="small muted">{file.message}</p>
      </div>
      <span />
      <button type="button" class="button small" aria-label={`Retry ${file.path}`} onClick={onRetry}>
        Retry
      </button>
      <WhyButton path={pathOf(file)} />
    </li>
  );
}

/** Deletes that wait for a person, and their approval. */
export function HeldTab({
  source,
  reload,
}: {
  readonly source: SourceStatus;
  readonly reload: () => void;
}): JSX.Element {
  const folder = source.path;
  const loaded = useLoad(
    `held ${folder} ${source.held} ${String(source.halted)}`,
    async (signal) => {
      const [{ held }, { files }] = await Promise.all([
        askDaemon("held", { folder }, signal),
        askDaemon("troubled", { path: folder, state: "held", limit: LISTED_MAX }, signal),
      ]);
      return { approvals: held, files };
    },
    EVERY_MS,
  );
  const [asked, setAsked] = useState<Approval | undefined>();
  return (
    <Show loaded={loaded}>
      {({ approvals, files }) =>
        approvals.length === 0 && files.length === 0 ? (
          <Empty title="No delete is held">
            When much of a folder is gone at once, its deletes wait here for you.
          </Empty>
        ) : (
          <div class="stack">
            {approvals.map((approval) => (
              <div class="row spread" key={approval.token}>
                <p>{approval.reason}</p>
                <button type="button" class="button danger" onClick={() => setAsked(approval)}>
                  {approval.held === 0 ? "Send again…" : `Approve ${counted(approval.held, "delete")}…`}
                </button>
              </div>
            ))}
            {files.length === 0 ? null : (
              <ul class="card flush files" aria-label="Files whose delete is held">
                {files.map((file) => (
                  <FileRow key={file.path} file={file} words={file.message} />
                ))}
              </ul>
            )}
            <p class="hint">
              Put the files back, and nothing is deleted. Approve only what is here: another delete needs
              another approval.
            </p>
            {asked === undefined ? null : (
              <Approve
                folder={folder}
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

function Approve({
  folder,
  approval: { held, token },
  onDone,
  onClose,
}: {
  readonly folder: string;
  readonly approval: Approval;
  readonly onDone: () => void;
  readonly onClose: () => void;
}): JSX.Element {
  return (
    <Confirm
      title={held === 0 ? "Send the documents again?" : `Delete ${counted(held, "document")}?`}
      effect={
        <p>
          {held === 0
            ? "The service lost documents of this folder. They are sent anew from the files."
            : "They can no longer be found. Their texts stay in the trash for a while, from which they can be restored."}
        </p>
      }
      number={held}
      action={held === 0 ? "Send again" : `Approve ${counted(held, "delete")}`}
      onConfirm={async () => {
        await askDaemon("approve", { folder, token });
        toast("Approved.");
        onDone();
      }}
      onClose={onClose}
    />
  );
}

/** Files that are left out, with the rule. */
export function SkippedTab({ folder }: { readonly folder: string }): JSX.Element {
  const loaded = useLoad(
    `skipped ${folder}`,
    async (signal) => (await askDaemon("skipped", { path: folder, limit: LISTED_MAX }, signal)).files,
  );
  return (
    <Show loaded={loaded}>
      {(files) =>
        files.length === 0 ? (
          <Empty title="No file is skipped">Every file of this folder is wanted.</Empty>
        ) : (
          <ul class="card flush files" aria-label="Skipped files">
            {files.map((file) => (
              <FileRow key={file.path} file={file} words={file.reason} />
            ))}
          </ul>
        )
      }
    </Show>
  );
}

/** Saved texts of deleted files, which can be put back. */
export function TrashTab({ folder }: { readonly folder: string }): JSX.Element {
  const loaded = useLoad(
    `trash ${folder}`,
    async (signal) => (await askDaemon("trash", { path: folder }, signal)).texts,
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
