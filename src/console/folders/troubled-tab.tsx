import type { JSX } from "preact";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import type { ListedFile } from "../../wire/daemon-files.ts";
import type { DocumentsAnswer } from "../../wire/documents.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { askDaemon } from "../client/daemon.ts";
import { counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Empty, ErrorNotice, Show } from "../parts/notice.tsx";
import { FileRow, pathOf, useCommand } from "./file-row.tsx";

const EVERY_MS = 3000;
/** More are seldom read, and the count stands above. */
const LISTED_MAX = 500;
const BEING_READ = "It is sent. The service is reading it.";

/** A file of the list. One that is sent waits for the service, and has nothing to retry. */
type Listed = Pick<ListedFile, "source" | "path" | "message"> & { readonly isSent: boolean };

/** Files that wait or failed, each with its reason. */
export function TroubledTab({
  source,
  state,
}: {
  readonly source: SourceStatus;
  readonly state: "waiting" | "failed";
}): JSX.Element {
  const folder = source.path;
  const loaded = useLoad(
    `${state} ${folder}`,
    async (signal) => {
      const { files } = await askDaemon("files", { path: folder, state, limit: LISTED_MAX }, signal);
      const troubled = files.map((file): Listed => ({ ...file, isSent: false }));
      return state === "failed" ? troubled : [...troubled, ...(await loadBeingRead(source, files, signal))];
    },
    EVERY_MS,
  );
  // Nothing is known of these files but that they are next.
  const next = state === "waiting" ? Math.max(0, source.waiting - (loaded.value?.length ?? 0)) : 0;
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
          <Empty title={emptyTitle(state, next)}>
            {state === "failed"
              ? "Every file that is wanted could be read and sent."
              : next > 0
                ? "They are being compared, read or sent, and need nothing."
                : "Everything that was saved is searchable, or failed."}
          </Empty>
        ) : (
          <div class="stack">
            <div class="row spread">
              <p class="muted">
                {files.length === LISTED_MAX
                  ? `The first ${LISTED_MAX} files`
                  : counted(files.length, "file")}
                {next === 0 ? "" : `, and ${counted(next, "file")} being compared, read or sent`}
              </p>
              {files.every(({ isSent }) => isSent) ? null : (
                <button type="button" class="button small" onClick={() => void run(() => retry(folder))}>
                  Retry all
                </button>
              )}
            </div>
            {error === undefined ? null : <ErrorNotice error={error} />}
            <ul class="card flush files" aria-label={state === "failed" ? "Failed files" : "Waiting files"}>
              {files.map((file) => (
                <FileRow
                  key={file.path}
                  file={file}
                  words={file.message}
                  command={
                    file.isSent ? undefined : (
                      <button
                        type="button"
                        class="button small"
                        aria-label={`Retry ${file.path}`}
                        onClick={() => void run(() => retry(pathOf(file)))}
                      >
                        Retry
                      </button>
                    )
                  }
                />
              ))}
            </ul>
          </div>
        )
      }
    </Show>
  );
}

function emptyTitle(state: "waiting" | "failed", next: number): string {
  if (state === "failed") return "No file failed";
  return next === 0 ? "No file waits" : `${counted(next, "file")} on the way`;
}

/** Loads the files that were sent and that the service is still reading, such as long scans, beside those that are listed. */
async function loadBeingRead(
  { path: source, collectionId, ownerId }: SourceStatus,
  others: readonly Pick<ListedFile, "path">[],
  signal: AbortSignal,
): Promise<readonly Listed[]> {
  if (collectionId === null) return [];
  const query = { collectionId, ownerId, status: "queued", limit: LISTED_MAX };
  const { data } = await ask<DocumentsAnswer>(ROUTES.documents, { query, signal });
  const listed = new Set(others.map(({ path }) => path));
  return data.documents.flatMap(({ path }) =>
    path === null || listed.has(path) ? [] : [{ source, path, message: BEING_READ, isSent: true }],
  );
}
