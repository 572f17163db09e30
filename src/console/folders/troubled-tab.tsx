import type { JSX } from "preact";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import type { ListedFile } from "../../wire/daemon-files.ts";
import { OLDER_WORDS } from "../../wire/file-state.ts";
import { askDaemon } from "../client/daemon.ts";
import { counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Empty, ErrorNotice, Show } from "../parts/notice.tsx";
import { FileRow, pathOf, useCommand } from "./file-row.tsx";

const EVERY_MS = 3000;
/** More are seldom read, and the count stands above. */
const LISTED_MAX = 500;
/** Files of which a retry may change something. */
const CAN_RETRY: ReadonlySet<ListedFile["state"]> = new Set(["waiting", "failed"]);

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
      const states = state === "waiting" ? (["waiting", "reading"] as const) : [state];
      const answers = await Promise.all(
        states.map((each) => askDaemon("files", { path: folder, state: each, limit: LISTED_MAX }, signal)),
      );
      return answers.flatMap(({ files }) => files);
    },
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
          <Empty title={EMPTY_TITLES[state]}>{EMPTY_WORDS[state]}</Empty>
        ) : (
          <div class="stack">
            <div class="row spread">
              <p class="muted">
                {files.length === LISTED_MAX
                  ? `The first ${LISTED_MAX} files`
                  : counted(files.length, "file")}
              </p>
              {files.some((file) => CAN_RETRY.has(file.state)) ? (
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
                  words={file.hasOlder ? `${file.message}${OLDER_WORDS}` : file.message}
                  command={
                    CAN_RETRY.has(file.state) ? (
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
