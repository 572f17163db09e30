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

/** A file of the list. One that is sent waits for the service, and a skipped one for a person. */
type Listed = Pick<ListedFile, "source" | "path" | "message"> & { readonly canRetry: boolean };

type State = "waiting" | "failed" | "skipped";

/** Files that wait, failed or are left out, each with its reason. */
export function TroubledTab({
  source,
  state,
}: {
  readonly source: SourceStatus;
  readonly state: State;
}): JSX.Element {
  const folder = source.path;
  const loaded = useLoad(
    `${state} ${folder}`,
    async (signal) => {
      const { files } = await askDaemon("files", { path: folder, state, limit: LISTED_MAX }, signal);
      const listed = files.map((file): Listed => ({ ...file, canRetry: state !== "skipped" }));
      return state === "waiting" ? [...listed, ...(await loadBeingRead(source, files, signal))] : listed;
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
          <Empty title={next > 0 ? `${counted(next, "file")} on the way` : EMPTY_TITLES[state]}>
            {next > 0 ? "They are being compared, read or sent, and need nothing." : EMPTY_WORDS[state]}
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
              {files.some(({ canRetry }) => canRetry) ? (
                <button type="button" class="button small" onClick={() => void run(() => retry(folder))}>
                  Retry all
                </button>
              ) : null}
            </div>
            {error === undefined ? null : <ErrorNotice error={error} />}
            <ul class="card flush files" aria-label={LABELS[state]}>
              {files.map((file) => (
                <FileRow
                  key={file.path}
                  file={file}
                  words={file.message}
                  command={
                    file.canRetry ? (
                      <button
                        type="button"
                        class="button small"
                        aria-label={`Retry ${file.path}`}
                        onClick={() => void run(() => retry(pathOf(file)))}
                      >
                        Retry
                      </button>
                    ) : undefined
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

const LABELS = { waiting: "Waiting files", failed: "Failed files", skipped: "Skipped files" };
const EMPTY_TITLES = { waiting: "No file waits", failed: "No file failed", skipped: "No file is skipped" };
const EMPTY_WORDS = {
  waiting: "Everything that was saved is searchable, or failed.",
  failed: "Every file that is wanted could be read and sent.",
  skipped: "Every file of this folder is wanted.",
};

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
    path === null || listed.has(path) ? [] : [{ source, path, message: BEING_READ, canRetry: false }],
  );
}
